//! eBPF programs at a device's tc hooks (tc-bpf(8)).

use std::os::fd::{AsFd, AsRawFd};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{
    TcAttribute, TcBpfFlags, TcFilterBpfOption, TcHandle, TcMessage, TcOption,
};

use super::socket::Verb;
use super::{NetlinkError, NetlinkSocket};

const HOOKS: &str = "clsact";
/// `ETH_P_ALL` in network order, below the priority.
const EVERY_PROTOCOL: u32 = (libc::ETH_P_ALL as u16).to_be() as u32;
const FIRST_PRIORITY: u32 = 1 << 16;

impl NetlinkSocket {
    /// Gives a device the hooks that programs can be put at.
    pub fn add_hooks(&self, device: u32) -> Result<(), NetlinkError> {
        let message = RouteNetlinkMessage::NewQueueDiscipline(hooks(device));
        let verb = Verb::new("add tc hooks to", format!("device {device}"));
        self.execute(verb, message, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Removes a device's hooks, and the programs with them.
    pub fn delete_hooks(&self, device: u32) -> Result<(), NetlinkError> {
        let message = RouteNetlinkMessage::DelQueueDiscipline(hooks(device));
        let verb = Verb::new("delete tc hooks of", format!("device {device}"));
        self.execute(verb, message, 0)
    }

    /// Attaches a program to every packet that comes in through a device that has
    /// [`hooks`](Self::add_hooks). The device holds the program from then on.
    pub fn add_ingress_program(
        &self,
        device: u32,
        name: &str,
        program: &impl AsFd,
    ) -> Result<(), NetlinkError> {
        let mut message = TcMessage::with_index(device as i32);
        message.header.parent = TcHandle {
            major: TcHandle::CLSACT.major,
            minor: TcHandle::MIN_INGRESS,
        };
        message.header.info = FIRST_PRIORITY | EVERY_PROTOCOL;
        let options = [
            TcFilterBpfOption::ProgFd(program.as_fd().as_raw_fd() as u32),
            TcFilterBpfOption::ProgName(name.into()),
            // The program's answer is the verdict.
            TcFilterBpfOption::Flags(TcBpfFlags::DirectAction),
        ];
        message.attributes = vec![
            TcAttribute::Kind("bpf".into()),
            TcAttribute::Options(options.map(TcOption::Bpf).into()),
        ];
        let verb = Verb::new("attach the program", format!("`{name}` to device {device}"));
        let message = RouteNetlinkMessage::NewTrafficFilter(message);
        self.execute(verb, message, NLM_F_CREATE | NLM_F_EXCL)
    }
}

fn hooks(device: u32) -> TcMessage {
    let mut message = TcMessage::with_index(device as i32);
    message.header.parent = TcHandle::CLSACT;
    message.header.handle = TcHandle {
        major: TcHandle::CLSACT.major,
        minor: 0,
    };
    message.attributes = vec![TcAttribute::Kind(HOOKS.into())];
    message
}

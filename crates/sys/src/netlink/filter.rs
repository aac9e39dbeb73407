//! eBPF programs at a device's tc hooks (tc-bpf(8)).

use std::os::fd::{AsFd, AsRawFd};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{
    TcAttribute, TcBpfFlags, TcFilterBpfOption, TcHandle, TcMessage, TcOption,
};

use super::socket::Verb;
use super::{NetlinkError, NetlinkSocket, TableEntry};

const HOOKS: &str = "clsact";
/// `ETH_P_ALL` in network order, below the priority.
const EVERY_PROTOCOL: u32 = (libc::ETH_P_ALL as u16).to_be() as u32;
const FIRST_PRIORITY: u32 = 1 << 16;

/// The hooks of the device with this index, where programs can be put. Deleting them
/// removes the programs too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hooks(pub u32);

impl std::fmt::Display for Hooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "tc hooks of device {}", self.0)
    }
}

impl TableEntry for Hooks {
    type Message = TcMessage;
    const ADD: fn(TcMessage) -> RouteNetlinkMessage = RouteNetlinkMessage::NewQueueDiscipline;
    const DELETE: fn(TcMessage) -> RouteNetlinkMessage = RouteNetlinkMessage::DelQueueDiscipline;

    fn message(&self) -> TcMessage {
        let mut message = TcMessage::with_index(self.0 as i32);
        message.header.parent = TcHandle::CLSACT;
        message.header.handle = TcHandle {
            major: TcHandle::CLSACT.major,
            minor: 0,
        };
        message.attributes = vec![TcAttribute::Kind(HOOKS.into())];
        message
    }
}

impl NetlinkSocket {
    /// Attaches a program to every packet that comes in through a device that has
    /// [`Hooks`]. The device holds the program from then on.
    pub fn add_ingress_program(
        &self,
        device: u32,
        name: &str,
        program: &impl AsFd,
    ) -> Result<(), NetlinkError> {
        self.add_program(device, TcHandle::MIN_INGRESS, name, program)
    }

    /// Attaches a program to every packet that goes out through a device that has
    /// [`Hooks`]. The device holds the program from then on.
    pub fn add_egress_program(
        &self,
        device: u32,
        name: &str,
        program: &impl AsFd,
    ) -> Result<(), NetlinkError> {
        self.add_program(device, TcHandle::MIN_EGRESS, name, program)
    }

    fn add_program(
        &self,
        device: u32,
        hook: u16,
        name: &str,
        program: &impl AsFd,
    ) -> Result<(), NetlinkError> {
        let mut message = TcMessage::with_index(device as i32);
        message.header.parent = TcHandle {
            major: TcHandle::CLSACT.major,
            minor: hook,
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

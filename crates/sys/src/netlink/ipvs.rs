//! Virtual servers of IPVS by generic netlink (`linux/ip_vs.h`).

use std::net::{IpAddr, SocketAddr};

use netlink_packet_core::NLM_F_ACK;

use super::NetlinkError;
use super::attribute::{attribute, named, nested, octets};
use super::generic::{Generic, GenericFamily};
use super::raw::Verb;

const VERSION: u8 = 1;

const IPVS_CMD_NEW_SERVICE: u8 = 1;
const IPVS_CMD_NEW_DEST: u8 = 5;
const IPVS_CMD_FLUSH: u8 = 17;
const IPVS_CMD_ATTR_SERVICE: u16 = 1;
const IPVS_CMD_ATTR_DEST: u16 = 2;
const IPVS_SVC_ATTR_AF: u16 = 1;
const IPVS_SVC_ATTR_PROTOCOL: u16 = 2;
const IPVS_SVC_ATTR_ADDR: u16 = 3;
const IPVS_SVC_ATTR_PORT: u16 = 4;
const IPVS_SVC_ATTR_SCHED_NAME: u16 = 6;
const IPVS_SVC_ATTR_FLAGS: u16 = 7;
const IPVS_SVC_ATTR_TIMEOUT: u16 = 8;
const IPVS_SVC_ATTR_NETMASK: u16 = 9;
const IPVS_DEST_ATTR_ADDR: u16 = 1;
const IPVS_DEST_ATTR_PORT: u16 = 2;
const IPVS_DEST_ATTR_FWD_METHOD: u16 = 3;
const IPVS_DEST_ATTR_WEIGHT: u16 = 4;
const IPVS_DEST_ATTR_U_THRESH: u16 = 5;
const IPVS_DEST_ATTR_L_THRESH: u16 = 6;
const IPVS_DEST_ATTR_ADDR_FAMILY: u16 = 11;
/// Packets are translated, both ways.
const IP_VS_CONN_F_MASQ: u32 = 0;

/// A generic netlink socket that sets up virtual servers of the network namespace in which
/// it was opened. The kernel lets only the machine's own root do so.
#[derive(Debug)]
pub struct Ipvs {
    socket: Generic,
    family: GenericFamily,
}

impl Ipvs {
    /// Opens a socket in the network namespace of the calling thread.
    ///
    /// # Errors
    ///
    /// [`NetlinkError::is_gone`] on a kernel without IPVS.
    pub fn open() -> Result<Self, NetlinkError> {
        let socket = Generic::open()?;
        let family = socket.family("IPVS", VERSION)?;
        Ok(Self { socket, family })
    }

    /// Adds a virtual server of TCP, whose connections go to its real servers by turns.
    pub fn add_service(&self, at: SocketAddr) -> Result<(), NetlinkError> {
        let mut service = service(at);
        // No flags, and all of them are meant.
        let flags = [0, u32::MAX].map(u32::to_ne_bytes).concat();
        let netmask = match at.ip() {
            IpAddr::V4(_) => u32::MAX,
            // The length of a prefix.
            IpAddr::V6(_) => 128,
        };
        service.extend([
            named(IPVS_SVC_ATTR_SCHED_NAME, "rr"),
            attribute(IPVS_SVC_ATTR_FLAGS, &flags),
            attribute(IPVS_SVC_ATTR_TIMEOUT, &0_u32.to_ne_bytes()),
            attribute(IPVS_SVC_ATTR_NETMASK, &netmask.to_ne_bytes()),
        ]);
        let body = nested(IPVS_CMD_ATTR_SERVICE, &service);
        let verb = Verb::new("add", format!("the virtual server {at}"));
        self.send(verb, IPVS_CMD_NEW_SERVICE, &body)
    }

    /// Adds a real server to a virtual one. Each can have it once.
    pub fn add_server(&self, service_at: SocketAddr, at: SocketAddr) -> Result<(), NetlinkError> {
        let number = |kind, value: u32| attribute(kind, &value.to_ne_bytes());
        let server = [
            attribute(IPVS_DEST_ATTR_ADDR, &octets(at.ip())),
            attribute(IPVS_DEST_ATTR_PORT, &at.port().to_be_bytes()),
            attribute(IPVS_DEST_ATTR_ADDR_FAMILY, &family(at).to_ne_bytes()),
            number(IPVS_DEST_ATTR_FWD_METHOD, IP_VS_CONN_F_MASQ),
            number(IPVS_DEST_ATTR_WEIGHT, 1),
            number(IPVS_DEST_ATTR_U_THRESH, 0),
            number(IPVS_DEST_ATTR_L_THRESH, 0),
        ];
        let mut body = nested(IPVS_CMD_ATTR_SERVICE, &service(service_at));
        body.extend(nested(IPVS_CMD_ATTR_DEST, &server));
        let verb = Verb::new("add", format!("the real server {at} of {service_at}"));
        self.send(verb, IPVS_CMD_NEW_DEST, &body)
    }

    /// Deletes all virtual servers.
    pub fn flush(&self) -> Result<(), NetlinkError> {
        let verb = Verb::new("delete", "all virtual servers".to_owned());
        self.send(verb, IPVS_CMD_FLUSH, &[])
    }

    fn send(&self, verb: Verb, command: u8, body: &[u8]) -> Result<(), NetlinkError> {
        let command = (command, NLM_F_ACK);
        self.socket
            .exchange(verb, self.family, command, body, |_| {})
    }
}

/// What names a virtual server.
fn service(at: SocketAddr) -> Vec<Vec<u8>> {
    let protocol = libc::IPPROTO_TCP as u16;
    vec![
        attribute(IPVS_SVC_ATTR_AF, &family(at).to_ne_bytes()),
        attribute(IPVS_SVC_ATTR_PROTOCOL, &protocol.to_ne_bytes()),
        attribute(IPVS_SVC_ATTR_ADDR, &octets(at.ip())),
        attribute(IPVS_SVC_ATTR_PORT, &at.port().to_be_bytes()),
    ]
}

fn family(address: SocketAddr) -> u16 {
    match address {
        SocketAddr::V4(_) => libc::AF_INET as u16,
        SocketAddr::V6(_) => libc::AF_INET6 as u16,
    }
}

//! Generic netlink (`linux/genetlink.h`): families have a name, and get their
//! number when the kernel loads them.

use netlink_packet_core::NLM_F_ACK;

use super::NetlinkError;
use super::attribute::{attribute, find};
use super::raw::{Raw, Verb};

/// The family that knows the others.
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const CTRL_VERSION: u8 = 1;
/// struct genlmsghdr: cmd, version, reserved.
const HEADER_BYTES: usize = 4;

/// A socket of generic netlink.
#[derive(Debug)]
pub(super) struct Generic(Raw);

/// A command of a family.
#[derive(Clone, Copy, Debug)]
pub(super) struct GenericCommand {
    /// The family's number.
    pub(super) family: u16,
    /// The version of the family's messages.
    pub(super) version: u8,
    /// The command's number.
    pub(super) command: u8,
    /// Flags besides that of a request.
    pub(super) flags: u16,
}

impl Generic {
    /// Opens a socket in the network namespace of the calling thread.
    pub(super) fn open() -> Result<Self, NetlinkError> {
        Raw::open(libc::NETLINK_GENERIC).map(Self)
    }

    /// The number of a family, which the kernel loads if it can.
    ///
    /// # Errors
    ///
    /// [`NetlinkError::is_gone`] on a kernel without it.
    pub(super) fn family(&self, name: &str) -> Result<u16, NetlinkError> {
        let object = format!("the netlink family `{name}`");
        let name = named(CTRL_ATTR_FAMILY_NAME, name);
        let command = GenericCommand {
            family: GENL_ID_CTRL,
            version: CTRL_VERSION,
            command: CTRL_CMD_GETFAMILY,
            flags: NLM_F_ACK,
        };
        let mut number = None;
        self.exchange(Verb::new("look up", &object), command, &name, |answer| {
            let found = find(answer, CTRL_ATTR_FAMILY_ID);
            number = found.and_then(|id| Some(u16::from_ne_bytes(id.try_into().ok()?)));
        })?;
        number.ok_or_else(|| NetlinkError::Garbled {
            action: "look up",
            object,
            detail: "it has no number".into(),
        })
    }

    /// Sends a command and passes each answer, without its header, to `each`.
    pub(super) fn exchange(
        &self,
        verb: Verb,
        command: GenericCommand,
        body: &[u8],
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), NetlinkError> {
        let mut bytes = vec![command.command, command.version, 0, 0];
        bytes.extend(body);
        self.0
            .exchange(verb, command.family, command.flags, &bytes, |answer| {
                each(answer.body().get(HEADER_BYTES..).unwrap_or(&[]));
                Ok(())
            })
    }
}

/// An attribute that is a name, with the zero byte that the kernel expects
/// after it.
pub(super) fn named(kind: u16, name: &str) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.push(0);
    attribute(kind, &bytes)
}

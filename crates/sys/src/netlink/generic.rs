//! Generic netlink (`linux/genetlink.h`): families have a name, and get their
//! number when the kernel loads them.

use netlink_packet_core::NLM_F_ACK;

use super::NetlinkError;
use super::attribute::{find, named};
use super::raw::{Raw, Verb};

const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// struct genlmsghdr: cmd, version, reserved.
const HEADER_BYTES: usize = 4;

/// A socket of generic netlink.
#[derive(Debug)]
pub(super) struct Generic(Raw);

/// A family of commands.
#[derive(Clone, Copy, Debug)]
pub(super) struct GenericFamily {
    number: u16,
    /// The version of its messages.
    version: u8,
}

/// The family that knows the others.
const CONTROLLER: GenericFamily = GenericFamily {
    number: 0x10,
    version: 1,
};

impl Generic {
    /// Opens a socket in the network namespace of the calling thread.
    pub(super) fn open() -> Result<Self, NetlinkError> {
        Raw::open(libc::NETLINK_GENERIC).map(Self)
    }

    /// A family, which the kernel loads if it can.
    ///
    /// # Errors
    ///
    /// [`NetlinkError::is_gone`] on a kernel without it.
    pub(super) fn family(&self, name: &str, version: u8) -> Result<GenericFamily, NetlinkError> {
        let object = format!("the netlink family `{name}`");
        let name = named(CTRL_ATTR_FAMILY_NAME, name);
        let verb = Verb::new("look up", &object);
        let command = (CTRL_CMD_GETFAMILY, NLM_F_ACK);
        let mut number = None;
        self.exchange(verb, CONTROLLER, command, &name, |answer| {
            let found = find(answer, CTRL_ATTR_FAMILY_ID);
            number = found.and_then(|id| Some(u16::from_ne_bytes(id.try_into().ok()?)));
        })?;
        match number {
            Some(number) => Ok(GenericFamily { number, version }),
            None => Err(Verb::new("look up", object).garbled("it has no number")),
        }
    }

    /// Sends a command, by its number and the flags besides that of a request, and
    /// passes each answer, without its header, to `each`.
    pub(super) fn exchange(
        &self,
        verb: Verb,
        family: GenericFamily,
        (command, flags): (u8, u16),
        body: &[u8],
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), NetlinkError> {
        let mut bytes = vec![command, family.version, 0, 0];
        bytes.extend(body);
        self.0
            .exchange(verb, family.number, flags, &bytes, |answer| {
                each(answer.body().get(HEADER_BYTES..).unwrap_or(&[]));
                Ok(())
            })
    }
}

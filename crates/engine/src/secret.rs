//! What both ends of a load know, at the start of a connection.

use std::io;

pub use plumbline_protocol::{Secret, SecretLength};

use crate::driver::Driver;

/// Shows the secret on a new connection, if there is one, and gives how many bytes that
/// took.
pub(crate) fn show<D: Driver>(
    io: &mut D,
    slot: usize,
    secret: Option<Secret>,
) -> io::Result<usize> {
    let Some(secret) = secret else {
        return Ok(0);
    };
    match io.send(slot, secret.bytes())? {
        Secret::LENGTH => Ok(Secret::LENGTH),
        // The kernel has room for more than this on every new connection.
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

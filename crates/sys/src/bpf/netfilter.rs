//! When packets come to netfilter's hooks, and when they leave them.

use std::os::fd::{AsRawFd, OwnedFd};

use super::bytecode::{self, Instruction, ProgramKind};
use super::{BpfError, BpfObject};

/// `NF_INET_PRE_ROUTING`, `NF_INET_FORWARD` and `NF_INET_POST_ROUTING`.
const HOOKS: [u32; 3] = [0, 2, 4];
/// Before all others that may be at a hook, and behind all but what ends connection tracking.
const PRIORITIES: [i32; 2] = [i32::MIN + 1, i32::MAX - 1];

/// Programs that run at netfilter's hooks of a namespace, until this is dropped.
#[derive(Debug)]
pub struct AtNetfilter {
    _links: Vec<OwnedFd>,
}

impl BpfObject {
    /// Has each packet that is received or forwarded in the calling thread's namespace leave the
    /// moments, monotonic nanoseconds, at which it came to netfilter's hooks and left them, in a map
    /// that each CPU has of its own: two numbers for each of PREROUTING, FORWARD and POSTROUTING,
    /// in one entry.
    ///
    /// # Errors
    ///
    /// Also without CAP_NET_ADMIN of the namespace, and before Linux 6.4.
    pub fn stamp_at_netfilter(&self, map: &str, is_v6: bool) -> Result<AtNetfilter, BpfError> {
        let number = self.map_fd(map)?.as_raw_fd();
        let family = if is_v6 { libc::AF_INET6 } else { libc::AF_INET };
        let edges = HOOKS
            .into_iter()
            .flat_map(|hook| PRIORITIES.map(|at| (hook, at)));
        let link = |(edge, (hook, priority)): (usize, (u32, i32))| {
            let failed = |error| BpfError::new("stamp packets by", map, error);
            let program = bytecode::load(ProgramKind::Netfilter, &stamp(number, edge as i16));
            let program =
                program.map_err(|error| BpfError::new("load a program for", map, error))?;
            bytecode::link(&program, family, hook, priority).map_err(failed)
        };
        let links = edges.enumerate().map(link).collect::<Result<_, _>>()?;
        Ok(AtNetfilter { _links: links })
    }
}

/// Writes the time as a number of the one entry of a map, and lets the packet pass (RFC 9669).
fn stamp(map: i32, number: i16) -> [Instruction; 12] {
    const LOOK_UP: i32 = 1;
    const TIME: i32 = 5;
    let of = |code, to: u8, from: u8, offset, immediate| Instruction {
        code,
        registers: to | (from << 4),
        offset,
        immediate,
    };
    [
        // The key, on the stack.
        of(0x62, 10, 0, -4, 0),
        of(0xbf, 2, 10, 0, 0),
        of(0x07, 2, 0, 0, -4),
        // The map, by its descriptor, in an instruction of two.
        of(0x18, 1, 1, 0, map),
        of(0, 0, 0, 0, 0),
        of(0x85, 0, 0, 0, LOOK_UP),
        // Without an entry, to the end.
        of(0x15, 0, 0, 3, 0),
        of(0xbf, 6, 0, 0, 0),
        of(0x85, 0, 0, 0, TIME),
        of(0x7b, 6, 0, 8 * number, 0),
        // `NF_ACCEPT`.
        of(0xb7, 0, 0, 0, 1),
        of(0x95, 0, 0, 0, 0),
    ]
}

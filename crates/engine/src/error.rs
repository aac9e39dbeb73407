//! What can go wrong before a load runs, or so badly that it cannot go on.

use std::io;
use std::net::SocketAddr;

/// Why a load or a responder could not run. Errors of single requests are not
/// here: they are counted in the result.
///
/// The text includes the kernel's error, before the remedy. That error is not a
/// [`source`](std::error::Error::source) as well, or it would be printed twice.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The plan contradicts itself or asks for the impossible.
    #[error("{0}")]
    Plan(String),
    /// The start was over when it was told.
    #[error(
        "the first turn of this load had come before it was told of it; the machine is too busy: end what else runs, or use whole windows (`--rotate off`)"
    )]
    Late,
    /// Nothing listens at the target.
    #[error(
        "nothing listens on {target}: the connection was refused; start the server first, or check the port"
    )]
    Refused {
        /// Where to.
        target: SocketAddr,
    },
    /// The target does not answer.
    #[error(
        "{target} cannot be reached: {cause}; check the address, the route and any firewall on the way"
    )]
    Unreachable {
        /// Where to.
        target: SocketAddr,
        /// The kernel's word.
        cause: io::Error,
    },
    /// No port is left to connect from, or the source address is not this
    /// machine's.
    #[error(
        "no address and port are left here for {connections} connections to {target}: a source address must be one of this machine, and has a port for some 28,000; name several sources, or widen net.ipv4.ip_local_port_range"
    )]
    NoSource {
        /// Where to.
        target: SocketAddr,
        /// Connections asked for.
        connections: u64,
    },
    /// The process may not open as many files as there are connections.
    #[error(
        "the open-file limit of {limit} allows at most {most} connections, not {connections}; use fewer, or raise the hard limit: `ulimit -n {needed}` as root, or LimitNOFILE= of the service"
    )]
    TooManyFiles {
        /// The limit of this process, raised as far as it may.
        limit: u64,
        /// Connections that it allows.
        most: u64,
        /// Connections asked for.
        connections: u64,
        /// A limit that would do.
        needed: u64,
    },
    /// The addresses to connect from have too few ports.
    #[error(
        "{connections} connections to {target} need more ports than the {most} that there are; use fewer, give at least {sources} source addresses, or widen net.ipv4.ip_local_port_range"
    )]
    TooManyPorts {
        /// Where to.
        target: SocketAddr,
        /// Connections asked for.
        connections: u64,
        /// Ports of all source addresses together.
        most: u64,
        /// Source addresses that would do.
        sources: u64,
    },
    /// The port to listen on is taken.
    #[error(
        "port {} on {} is taken by another process; choose another, or 0 to let the kernel pick", .at.port(), .at.ip()
    )]
    PortTaken {
        /// Where.
        at: SocketAddr,
    },
    /// The address to listen on is not of this machine, or needs a privilege.
    #[error("cannot listen on {at}: {cause}; use an address of this machine and a port above 1023")]
    Listen {
        /// Where.
        at: SocketAddr,
        /// The kernel's word.
        cause: io::Error,
    },
    /// A worker thread could not be bound to its CPU.
    #[error(
        "cannot bind a worker to CPU {cpu}: {cause}; `--cpus` must name CPUs that this process may use"
    )]
    Pin {
        /// Which.
        cpu: usize,
        /// The kernel's word.
        cause: io::Error,
    },
    /// io_uring was asked for by name and is not allowed.
    #[error(
        "io_uring cannot be used: {cause}; the kernel is older than 6.1, or a seccomp profile or the sysctl kernel.io_uring_disabled forbids it; use epoll"
    )]
    Uring {
        /// The kernel's word.
        cause: io::Error,
    },
    /// The kernel does not time-stamp what a socket sends and receives.
    #[error(
        "requests cannot be timed inside this kernel: {cause}; it may be too old (4.19 is enough) or not Linux's own (gVisor); leave the time stamps out"
    )]
    NoStamps {
        /// The kernel's word.
        cause: io::Error,
    },
    /// A system call failed that should not fail on a healthy machine.
    #[error("{what} failed: {cause}; the machine is probably out of memory or file descriptors")]
    System {
        /// Which call, on what.
        what: &'static str,
        /// The kernel's word.
        cause: io::Error,
    },
}

impl EngineError {
    /// Whether what was asked is at fault, and not the machine or the network.
    pub fn is_bad_usage(&self) -> bool {
        matches!(
            self,
            Self::Plan(_)
                | Self::Pin { .. }
                | Self::TooManyFiles { .. }
                | Self::TooManyPorts { .. }
        )
    }

    /// Names the call that failed, for `map_err`.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::System { what, cause }
    }

    /// Explains a failed connection.
    pub(crate) fn connect(target: SocketAddr, connections: u64, source: io::Error) -> Self {
        match source.kind() {
            _ if out_of_files(&source) => Self::too_many_files(connections),
            io::ErrorKind::ConnectionRefused => Self::Refused { target },
            io::ErrorKind::AddrNotAvailable => Self::NoSource {
                target,
                connections,
            },
            _ => Self::Unreachable {
                target,
                cause: source,
            },
        }
    }

    /// The open-file limit stands in the way of so many connections.
    pub(crate) fn too_many_files(connections: u64) -> Self {
        let limit = plumbline_sys::cpu::open_file_limit().unwrap_or(0);
        Self::TooManyFiles {
            limit,
            most: connections_in(limit),
            connections,
            needed: files_for(connections),
        }
    }

    /// Explains a failed bind.
    pub(crate) fn listen(at: SocketAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::PortTaken { at },
            _ => Self::Listen { at, cause: source },
        }
    }
}

/// Files beside the connections: standard streams, epoll, pipes to the
/// controller, what is open for a moment.
const OTHER_FILES: u64 = 64;

/// Open files that this many connections take.
pub(crate) fn files_for(connections: u64) -> u64 {
    connections + OTHER_FILES
}

/// Connections that this many open files allow.
pub(crate) fn connections_in(files: u64) -> u64 {
    files.saturating_sub(OTHER_FILES)
}

/// Whether a call failed because no more files may be open.
pub(crate) fn out_of_files(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(EMFILE | ENFILE))
}

/// "Too many open files" of this process, and of the machine. The values are
/// the same on every Linux architecture.
const EMFILE: i32 = 24;
const ENFILE: i32 = 23;

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn the_kernels_word_is_said_once() {
        let target = SocketAddr::from(([192, 0, 2, 1], 80));
        let cause = || io::Error::from(io::ErrorKind::TimedOut);
        for error in [
            EngineError::connect(target, 1, cause()),
            EngineError::listen(target, cause()),
            EngineError::system("epoll_create1")(cause()),
            EngineError::Pin {
                cpu: 7,
                cause: cause(),
            },
        ] {
            let text = error.to_string();
            assert_eq!(text.matches(&cause().to_string()).count(), 1, "{text}");
            assert!(error.source().is_none(), "{text}");
        }
    }
}

//! What can go wrong before a load runs, or so badly that it cannot go on.

use std::io;
use std::net::SocketAddr;

/// Why a load or a responder could not run. Errors of single requests are not
/// here: they are counted in the result.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The plan contradicts itself or asks for the impossible.
    #[error("{0}")]
    Plan(String),
    /// Nobody listens at the target.
    #[error(
        "nobody listens on {target}: the connection was refused; start the server first, or check the port"
    )]
    Refused {
        /// Where to.
        target: SocketAddr,
    },
    /// The target does not answer.
    #[error(
        "{target} cannot be reached: {source}; check the address, the route and any firewall on the way"
    )]
    Unreachable {
        /// Where to.
        target: SocketAddr,
        /// The kernel's word.
        source: io::Error,
    },
    /// The process may not open as many files as there are connections.
    #[error(
        "the open-file limit of {limit} is too low for {connections} connections; raise it with `ulimit -n {needed}`"
    )]
    TooManyFiles {
        /// The soft limit of this process.
        limit: u64,
        /// Connections asked for.
        connections: u64,
        /// A limit that would do.
        needed: u64,
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
    #[error(
        "cannot listen on {at}: {source}; use an address of this machine and a port above 1023"
    )]
    Listen {
        /// Where.
        at: SocketAddr,
        /// The kernel's word.
        source: io::Error,
    },
    /// A worker thread could not be bound to its CPU.
    #[error(
        "cannot bind a worker to CPU {cpu}: {source}; `--cpus` must name CPUs that this process may use"
    )]
    Pin {
        /// Which.
        cpu: usize,
        /// The kernel's word.
        source: io::Error,
    },
    /// A system call failed that does not fail on a sound machine.
    #[error("{what} failed: {source}; the machine is probably out of memory or file descriptors")]
    System {
        /// Which call, on what.
        what: &'static str,
        /// The kernel's word.
        source: io::Error,
    },
}

impl EngineError {
    /// Names the call that failed, for `map_err`.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }

    /// Explains a failed connection.
    pub(crate) fn connect(target: SocketAddr, connections: u64, source: io::Error) -> Self {
        match source.raw_os_error() {
            Some(EMFILE | ENFILE) => Self::too_many_files(connections),
            _ if source.kind() == io::ErrorKind::ConnectionRefused => Self::Refused { target },
            _ => Self::Unreachable { target, source },
        }
    }

    /// The open-file limit stands in the way of so many connections.
    pub(crate) fn too_many_files(connections: u64) -> Self {
        Self::TooManyFiles {
            limit: plumbline_sys::cpu::open_file_limit().unwrap_or(0),
            connections,
            needed: connections + 64,
        }
    }

    /// Explains a failed bind.
    pub(crate) fn listen(at: SocketAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::PortTaken { at },
            _ => Self::Listen { at, source },
        }
    }
}

/// "Too many open files" of this process, and of the machine. The values are
/// the same on every Linux architecture.
const EMFILE: i32 = 24;
const ENFILE: i32 = 23;

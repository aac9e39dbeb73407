//! What can go wrong in a lab.

use std::error::Error;

use plumbline_harness::TargetError;
use plumbline_sys::namespace::NamespaceError;
use plumbline_sys::netlink::NetlinkError;
use plumbline_sys::process::ProcessError;
use plumbline_sys::sysctl::SysctlError;

/// Why a lab could not be built, measured or taken down.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum LabError {
    /// The kernel lacks what the network needs. A value, not a fault.
    #[error("{what} is not supported here: {needs}")]
    Unsupported { what: String, needs: String },
    /// The real system does not have the path for this IP version.
    #[error(
        "{network} carries IPv{has} only, as the system that it is modelled on; use family {has}"
    )]
    Family {
        network: &'static str,
        has: u8,
        lacks: u8,
    },
    /// No network of this name.
    #[error("no network `{name}`; there are {known}")]
    UnknownNetwork { name: String, known: String },
    /// An MTU that no packet of the family fits through.
    #[error("an MTU of {mtu} bytes is out of range; choose one from {least} to 65535")]
    Mtu { mtu: u32, least: u32 },
    /// The agent's program is not there.
    #[error("the agent program `{program}` cannot be used: {source}; build it, or give another")]
    Agent {
        program: String,
        source: std::io::Error,
    },
    /// The counters of a namespace could not be read.
    #[error("cannot read the counters of {place}: {source}; is /proc mounted?")]
    Counters {
        place: String,
        source: std::io::Error,
    },
    /// A device stayed without a carrier.
    #[error(
        "in {place}: device `{device}` is not ready after {} s; the machine may be overloaded, try again",
        limit.as_secs()
    )]
    Unsettled {
        place: String,
        device: String,
        limit: std::time::Duration,
    },
    /// A step in one of the lab's namespaces failed.
    #[error("in {place}: {source}")]
    Netlink { place: String, source: NetlinkError },
    /// A sysctl of one of the lab's namespaces.
    #[error("in {place}: {source}")]
    Sysctl { place: String, source: SysctlError },
    /// What only one network can run into; it says the remedy.
    #[error(transparent)]
    Network(Box<dyn Error + Send + Sync>),
    /// A process of the network's own could not be started, or has ended.
    #[error(
        "a process that forwards the network's packets failed: {0}; the machine may be out of memory or processes"
    )]
    Forwarder(#[source] std::io::Error),
    /// The packets of pods that are launched cannot be followed.
    #[error(
        "cannot follow the packets of launched pods: {0}; the machine may be out of files or memory"
    )]
    Watch(#[source] std::io::Error),
    /// A namespace.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// An agent.
    #[error(transparent)]
    Process(#[from] ProcessError),
}

impl LabError {
    /// An error that a network has for itself.
    pub(crate) fn network(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Network(Box::new(error))
    }
}

impl From<LabError> for TargetError {
    fn from(error: LabError) -> Self {
        match error {
            LabError::Unsupported { what, needs } => Self::Unsupported { what, needs },
            LabError::Family {
                network,
                has,
                lacks,
            } => Self::Unsupported {
                what: format!("{network} for IPv{lacks}"),
                needs: format!("the system that it is modelled on has IPv{has} only"),
            },
            other => Self::Failed(other.to_string()),
        }
    }
}

//! Why nothing could be looked into.

use plumbline_harness::TargetError;
use plumbline_record::WriteError;
use plumbline_sys::namespace::NamespaceError;
use plumbline_sys::netlink::NetlinkError;
use plumbline_tracer::TracerError;

/// Why nothing could be looked into.
#[derive(Debug, thiserror::Error)]
pub enum XrayError {
    /// What was asked for is not to be had with these flags.
    #[error("{0}")]
    Refused(String),
    /// The kernel or the rights lack something.
    #[error("xray is not supported here: {needs}")]
    Unsupported {
        /// What is missing, and how to get it.
        needs: String,
    },
    /// The path could not be made, or no load was carried by it.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// Devices could not be tapped.
    #[error("the devices of {place} cannot be tapped: {source}")]
    Taps {
        /// The namespace.
        place: String,
        /// What the kernel says.
        source: std::io::Error,
    },
    /// The programs at the tracepoints could not be used.
    #[error(transparent)]
    Traced(TracerError),
    /// A namespace could not be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The devices of a path could not be listed.
    #[error(transparent)]
    Devices(#[from] NetlinkError),
    /// What was found could not be kept.
    #[error(transparent)]
    Kept(#[from] WriteError),
    /// The page of what was found could not be made.
    #[error(transparent)]
    Page(#[from] askama::Error),
    /// Not one request was followed to its end.
    #[error("no request could be followed through {network}: {why}")]
    Unseen {
        /// The network.
        network: String,
        /// What became of those that began.
        why: String,
    },
    /// Of several networks none could be followed.
    #[error("no network could be followed: {0}")]
    NoneFollowed(String),
    /// Somebody ended it before there was anything to show.
    #[error("interrupted before every network was looked at once")]
    Interrupted,
}

impl From<TracerError> for XrayError {
    fn from(error: TracerError) -> Self {
        match error {
            TracerError::Unsupported { needs } => Self::Unsupported { needs },
            error => Self::Traced(error),
        }
    }
}

impl XrayError {
    /// Whether what was typed is at fault.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Refused(_))
    }

    /// Whether it is of one network, and others may be followed all the same.
    pub(crate) fn is_of_network(&self) -> bool {
        matches!(
            self,
            Self::Target(_)
                | Self::Taps { .. }
                | Self::Namespace(_)
                | Self::Devices(_)
                | Self::Unseen { .. }
        )
    }

    /// Why, for readers who know which network it is about.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Unseen { why, .. } => why.clone(),
            other => other.to_string(),
        }
    }
}

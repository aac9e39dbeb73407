//! Why the kernel refused a netlink request.

use nix::errno::Errno;

/// A netlink request that failed: what was requested, on what, and why it
/// failed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum NetlinkError {
    /// The kernel answered with an error.
    #[error("cannot {action} {object}: {}{}", reason(*errno), detail_text(detail))]
    Refused {
        action: &'static str,
        object: String,
        errno: Errno,
        detail: Option<String>,
    },
    /// The device does not exist in the namespace of the socket.
    #[error("no device `{name}` in this namespace; it may have been deleted from outside")]
    NoDevice { name: String },
    /// The socket itself failed.
    #[error("cannot {action} the netlink socket: {source}; is the kernel built with CONFIG_NET?")]
    Socket {
        action: &'static str,
        source: std::io::Error,
    },
    /// An answer that does not follow the protocol.
    #[error(
        "cannot read the kernel's answer to {action} {object}: {detail}; this kernel may be newer than this program"
    )]
    Garbled {
        action: &'static str,
        object: String,
        detail: String,
    },
}

impl NetlinkError {
    /// Whether the kernel lacks the driver or feature, as opposed to a wrong
    /// or forbidden request.
    pub fn is_unsupported(&self) -> bool {
        // ENODEV is not among them: it also means that a named device is gone.
        // EAFNOSUPPORT is what a kernel without IPv6 says, ENOSYS one without a
        // cipher, and EPROTONOSUPPORT one without the netlink protocol.
        const LACKS: [Errno; 4] = [
            Errno::EOPNOTSUPP,
            Errno::EAFNOSUPPORT,
            Errno::EPROTONOSUPPORT,
            Errno::ENOSYS,
        ];
        match self {
            Self::Refused { errno, .. } => LACKS.contains(errno),
            Self::Socket { source, .. } => source
                .raw_os_error()
                .is_some_and(|code| LACKS.contains(&Errno::from_raw(code))),
            _ => false,
        }
    }

    /// Whether the object to be removed does not exist.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::NoDevice { .. })
            || matches!(
                self.errno(),
                Some(Errno::ENODEV | Errno::ESRCH | Errno::ENOENT | Errno::EADDRNOTAVAIL)
            )
    }

    /// Whether there is one already of what was to be added.
    pub fn is_taken(&self) -> bool {
        self.errno() == Some(Errno::EEXIST)
    }

    /// Whether the process lacks the right to.
    pub fn is_forbidden(&self) -> bool {
        self.errno() == Some(Errno::EPERM)
    }

    /// The kernel's error number, when it was the kernel that refused.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::Refused { errno, .. } => Some(*errno),
            _ => None,
        }
    }
}

fn reason(errno: Errno) -> String {
    let remedy = match errno {
        Errno::EOPNOTSUPP | Errno::EAFNOSUPPORT | Errno::EPROTONOSUPPORT => {
            "this kernel lacks the driver or feature"
        }
        Errno::EPERM | Errno::EACCES => {
            "not permitted in this namespace; enter private namespaces first"
        }
        Errno::EEXIST => "it already exists",
        _ => return errno.desc().to_string(),
    };
    format!("{} ({remedy})", errno.desc())
}

fn detail_text(detail: &Option<String>) -> String {
    detail
        .as_ref()
        .map_or_else(String::new, |text| format!(": {text}"))
}

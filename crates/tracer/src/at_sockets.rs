//! What kernels show of a message at its sockets.

/// What is seen of a message at the sockets that it is sent by and read from. Linux has got
/// tracepoints there one after another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtSockets {
    /// When it is handed to TCP, when its socket tells who waits, and when it was read.
    #[default]
    Linux6_16,
    /// The last two.
    Linux6_3,
    /// The last one.
    Linux5_10,
}

impl AtSockets {
    /// The versions of Linux that have the tracepoints, the latest first.
    pub const VERSIONS: [(&str, Self); 3] = [
        ("6.16", Self::Linux6_16),
        ("6.3", Self::Linux6_3),
        ("5.10", Self::Linux5_10),
    ];

    /// What a version of these shows; `None` for another one.
    pub fn of(version: &str) -> Option<Self> {
        let mut known = Self::VERSIONS.into_iter();
        known.find_map(|(of, shown)| (of == version).then_some(shown))
    }

    /// What earlier kernels show.
    pub(crate) fn of_earlier(self) -> Option<Self> {
        match self {
            Self::Linux6_16 => Some(Self::Linux6_3),
            Self::Linux6_3 => Some(Self::Linux5_10),
            Self::Linux5_10 => None,
        }
    }

    /// The programs with their tracepoints.
    pub(crate) fn programs(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Linux6_16 => &[
                ("on_sent", "tcp_sendmsg_locked"),
                ("on_ready", "sk_data_ready"),
                ("on_read", "sock_recv_length"),
            ],
            Self::Linux6_3 => &[
                ("on_ready", "sk_data_ready"),
                ("on_read", "sock_recv_length"),
            ],
            Self::Linux5_10 => &[("on_copied", "tcp_rcv_space_adjust")],
        }
    }
}

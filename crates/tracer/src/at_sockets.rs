//! What kernels show of a message at its sockets.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

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
    Linux5_17,
}

impl AtSockets {
    /// All of them, the latest first.
    const ALL: [Self; 3] = [Self::Linux6_16, Self::Linux6_3, Self::Linux5_17];

    /// What earlier kernels show.
    pub(crate) fn of_earlier(self) -> Option<Self> {
        let mut from_here = Self::ALL.into_iter().skip_while(|it| *it != self);
        from_here.nth(1)
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
            Self::Linux5_17 => &[("on_copied", "tcp_rcv_space_adjust")],
        }
    }
}

/// As the version of Linux that has the tracepoints.
impl Display for AtSockets {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Linux6_16 => "6.16",
            Self::Linux6_3 => "6.3",
            Self::Linux5_17 => "5.17",
        })
    }
}

/// From the version of Linux that has the tracepoints.
impl FromStr for AtSockets {
    type Err = String;

    fn from_str(version: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|it| it.to_string() == version);
        known.ok_or_else(|| format!("one of {}", Self::ALL.map(|it| it.to_string()).join(", ")))
    }
}

//! What is asked of the agents at the ends of a path that is sounded, and beside it, and
//! what they answer.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use crate::sight::{LocalAddress, Way};

/// What to do to see what becomes of packets on a path.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "sound", rename_all = "kebab-case")]
pub enum SoundOrder {
    /// Take what comes to this address with this key, and no longer what was taken before.
    /// Port 0 lets the kernel pick one, for UDP and TCP.
    Take {
        /// An address of this machine.
        address: SocketAddr,
        /// What senders show; whatever comes without it is dropped.
        key: u64,
    },
    /// Send a train of datagrams.
    Train(TrainOrder),
    /// Say what has come of a train.
    Taken {
        /// Its number.
        train: u32,
    },
    /// Send a stream.
    Stream(StreamOrder),
    /// Look at the namespace.
    Survey {
        /// Addresses whose routes are wanted.
        towards: Vec<IpAddr>,
    },
    /// Ask the name server that a cluster gives its pods for a name that each cluster has.
    Resolve(ResolveOrder),
    /// Switch something off on some devices, until told to put it back. An agent that ends
    /// puts it back too.
    SwitchOff {
        /// Names of devices. Those on which it is off already, and those that do not let it
        /// be switched, stay as they are.
        devices: Vec<String>,
        /// What.
        offload: OffloadGroup,
    },
    /// Put back what was switched off.
    PutBack,
}

/// Offloads of a device that are tried together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OffloadGroup {
    /// Merging what is received (GRO).
    Receive,
    /// Segmenting late, or by the device (TSO, GSO).
    Segmentation,
    /// Checksums of what is sent, by the device.
    Checksum,
}

impl OffloadGroup {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Receive, Self::Segmentation, Self::Checksum];

    /// The words by which `ethtool -K` switches them.
    pub fn ethtool_words(self) -> &'static [&'static str] {
        match self {
            Self::Receive => &["gro"],
            Self::Segmentation => &["tso", "gso"],
            Self::Checksum => &["tx"],
        }
    }
}

/// Numbered datagrams of one size that must not be cut into fragments.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrainOrder {
    /// The only address to send to (S-5a).
    pub to: SocketAddr,
    /// What to show there.
    pub key: u64,
    /// Its number, which no other train to there has.
    pub train: u32,
    /// How many datagrams.
    pub count: u32,
    /// Bytes of each packet, the headers of IP and UDP included.
    pub packet_bytes: u32,
    /// From one to the next, nanoseconds.
    pub gap_ns: u64,
    /// How long answers by ICMP are waited for behind the last, nanoseconds.
    pub wait_ns: u64,
}

/// What the sender of a train saw.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentTrain {
    /// The longest packet that the own stack sent to there before the first one, in bytes;
    /// 0 where it sends none.
    pub limit: u32,
    /// Datagrams that the kernel took.
    pub sent: u32,
    /// Datagrams that the own stack refused as too long.
    pub refused: u32,
    /// What somebody on the way answered: that packets are too long.
    pub answer: Option<MtuAnswer>,
    /// Another error, the last one.
    pub error: Option<String>,
}

/// Somebody on the way says that a packet was too long for what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MtuAnswer {
    /// The longest packet that goes on, bytes; 0 where that was not said.
    pub mtu: u32,
    /// Who says so.
    pub router: IpAddr,
}

/// What of a train has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenTrain {
    /// Datagrams, each counted once.
    pub arrived: u32,
    /// Datagrams that came again.
    pub repeated: u32,
    /// Datagrams that came after one that was sent later.
    pub overtaken: u32,
}

/// Bytes over one connection of TCP, as many as get through.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StreamOrder {
    /// The only address to send to (S-5a).
    pub to: SocketAddr,
    /// What to show there.
    pub key: u64,
    /// For how long, nanoseconds.
    pub length_ns: u64,
    /// How long the connection is waited for, nanoseconds.
    pub connect_ns: u64,
}

/// What the sender of a stream saw.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentStream {
    /// What kept it from being connected; `None` when nothing did.
    pub refused: Option<String>,
    /// Bytes that the other side's kernel has acknowledged.
    pub acked: u64,
    /// For how long it was sent, nanoseconds.
    pub length_ns: u64,
    /// Segments that were sent again.
    pub retransmits: u32,
    /// Most bytes of a segment, options of TCP left out.
    pub send_mss: u32,
}

/// How often a name server is asked, one time after the other.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ResolveOrder {
    /// How often.
    pub count: u32,
    /// How long an answer is waited for, nanoseconds.
    pub wait_ns: u64,
}

/// How a name server answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedName {
    /// Its address.
    pub server: IpAddr,
    /// The name that it was asked for.
    pub name: String,
    /// How often it was asked.
    pub asked: u32,
    /// From each question to its answer, nanoseconds; those without one are not in it.
    pub answers_ns: Vec<u64>,
    /// Why the last that has no answer has none.
    pub error: Option<String>,
}

/// What a namespace looks like, with running totals.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survey {
    /// Inode of the namespace.
    pub namespace: u32,
    /// Counters of protocols by their names in `/proc/net`.
    pub counters: BTreeMap<String, u64>,
    /// Tracked connections: how many there are, how many there may be, and how many were
    /// dropped for want of room. Zeroes where none are tracked.
    pub tracked: (u64, u64, u64),
    /// Its devices.
    pub devices: Vec<SurveyedDevice>,
    /// The reverse path filter of all devices; the greater one of it and a device's own acts
    /// there.
    pub rp_filter: Option<u8>,
    /// Addresses of its devices.
    pub addresses: Vec<LocalAddress>,
    /// The route to each address that was asked for, in that order; `None` where there is
    /// none.
    pub ways: Vec<Option<Way>>,
}

/// A device as a survey finds it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SurveyedDevice {
    /// Its number in its namespace.
    pub index: u32,
    /// Name.
    pub name: String,
    /// Driver kind, such as `veth`; empty for devices that netlink did not make.
    pub kind: String,
    /// MTU in bytes.
    pub mtu: u32,
    /// Packets received since it was made.
    pub rx_packets: u64,
    /// Packets sent since it was made.
    pub tx_packets: u64,
    /// Packets dropped and errors since it was made.
    pub dropped: u64,
    /// Features that it could have and that are switched off, as `ethtool -k` names them.
    pub switched_off: Vec<String>,
    /// Its own reverse path filter: 0 none, 1 strict, 2 loose; `None` without IPv4.
    pub rp_filter: Option<u8>,
}

/// What came of an order.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "sounded", rename_all = "kebab-case")]
pub enum Sounded {
    /// It takes what comes.
    Takes {
        /// Where.
        address: SocketAddr,
    },
    /// A train was sent.
    Train(SentTrain),
    /// What came of one.
    Taken(TakenTrain),
    /// A stream was sent.
    Stream(SentStream),
    /// The namespace.
    Survey(Survey),
    /// The name server answered so; `None` where this is no pod that has one of a cluster.
    Resolved {
        /// What was seen of it.
        name: Option<ResolvedName>,
    },
    /// Something was switched off.
    SwitchedOff {
        /// The devices on which it was on before.
        devices: Vec<String>,
    },
    /// It was put back.
    PutBack,
}

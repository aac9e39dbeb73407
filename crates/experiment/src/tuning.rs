//! What may be set differently on a network: one row of one table for each setting.

use std::fmt;
use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ceiling::MTUS;
use crate::section::{self, FileSection};
use crate::tree::{Data, SpannedValue};
use crate::words::words;
use crate::{SpecError, bit_rate};

/// Bytes of the largest packet that devices may have. The kernel takes more, but the proof
/// that packets took the path reckons with no larger one.
const PACKET_BYTES: RangeInclusive<u32> = 2_048..=192 << 10;
/// Bytes that a connection's buffer may grow to.
const BUFFER_BYTES: RangeInclusive<u32> = 4_096..=1 << 30;

words! {
    /// How packets wait for a device.
    Qdisc {
        /// They do not, as it is with virtual devices by default.
        #[default]
        Noqueue = "noqueue",
        /// In their order, in three bands.
        PfifoFast = "pfifo_fast",
        /// In a queue for each flow, and paced.
        Fq = "fq",
        /// In queues of flows that are kept short.
        FqCodel = "fq_codel",
    }
}

words! {
    /// How nodes encrypt what they send to each other.
    Encryption {
        /// By IPsec: ESP in tunnel mode, with AES in Galois counter mode.
        #[default]
        Esp = "esp",
        /// By a WireGuard device on each node.
        Wireguard = "wireguard",
    }
}

words! {
    /// How TCP finds the rate of a path.
    CongestionControl {
        /// By losses, and a cubic function of time.
        #[default]
        Cubic = "cubic",
        /// By losses.
        Reno = "reno",
        /// By the rate and the delay that it measures.
        Bbr = "bbr",
        /// By marks of switches.
        Dctcp = "dctcp",
        /// By delays.
        Vegas = "vegas",
    }
}

/// A value that a setting may have.
trait SettingValue: Copy {
    /// Which values are possible, where the type says too little.
    type Bounds;

    fn read(key: &str, value: &SpannedValue, bounds: &Self::Bounds) -> Result<Self, SpecError>;

    fn is_possible(self, bounds: &Self::Bounds) -> bool;

    /// As sentences say it.
    fn in_words(self) -> String;
}

impl SettingValue for bool {
    type Bounds = ();

    fn read(key: &str, value: &SpannedValue, (): &()) -> Result<Self, SpecError> {
        match value.data {
            Data::Boolean(flag) => Ok(flag),
            _ => Err(section::wrong_type(
                key,
                value,
                "true or false",
                "write true or false",
            )),
        }
    }

    fn is_possible(self, (): &()) -> bool {
        true
    }

    fn in_words(self) -> String {
        let word = if self { "on" } else { "off" };
        word.to_owned()
    }
}

impl SettingValue for u32 {
    type Bounds = RangeInclusive<u32>;

    fn read(key: &str, value: &SpannedValue, bounds: &Self::Bounds) -> Result<Self, SpecError> {
        section::whole(key, value, bounds)
    }

    fn is_possible(self, bounds: &Self::Bounds) -> bool {
        bounds.contains(&self)
    }

    fn in_words(self) -> String {
        self.to_string()
    }
}

/// Bits per second.
impl SettingValue for u64 {
    type Bounds = ();

    fn read(key: &str, value: &SpannedValue, (): &()) -> Result<Self, SpecError> {
        bit_rate::read(key, value)
    }

    fn is_possible(self, (): &()) -> bool {
        bit_rate::is_possible(self)
    }

    fn in_words(self) -> String {
        bit_rate::in_words(self)
    }
}

macro_rules! words_as_values {
    ($($name:ident),+) => {$(
        impl SettingValue for $name {
            type Bounds = ();

            fn read(key: &str, value: &SpannedValue, (): &()) -> Result<Self, SpecError> {
                let known: Vec<_> = Self::ALL.iter().map(|it| (it.as_str(), *it)).collect();
                section::choice(key, value, &known)
            }

            fn is_possible(self, (): &()) -> bool {
                true
            }

            fn in_words(self) -> String {
                self.as_str().to_owned()
            }
        }
    )+};
}

words_as_values!(Encryption, Qdisc, CongestionControl);

/// Rows of a key of the file, its type, which values it may have, and how sentences say it.
macro_rules! settings {
    ($($(#[doc = $doc:literal])+ $key:ident: $type:ty, $bounds:expr, $words:literal;)+) => {
        /// What is set differently on a network. Nothing by default.
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize,
            Deserialize, JsonSchema,
        )]
        #[serde(default)]
        pub struct Tuning {
            $(
                $(#[doc = $doc])+
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $key: Option<$type>,
            )+
        }

        impl Tuning {
            /// Nothing is set differently.
            pub const NONE: Self = Self { $($key: None),+ };
            /// The settings, as files write them.
            pub const KEYS: &'static [&'static str] = &[$(stringify!($key)),+];

            pub(crate) fn read(section: &FileSection<'_>) -> Result<Self, SpecError> {
                let mut tuning = Self::default();
                $(
                    if let Some(value) = section.get(stringify!($key)) {
                        let read = <$type as SettingValue>::read;
                        tuning.$key = Some(read(stringify!($key), value, &$bounds)?);
                    }
                )+
                Ok(tuning)
            }

            /// Whether everything is within what a file may ask for.
            pub(crate) fn is_possible(&self) -> bool {
                true $(&& self.$key.is_none_or(|it| it.is_possible(&$bounds)))+
            }

            /// What is set, each as a key and in words.
            pub fn all_set(&self) -> Vec<(&'static str, String)> {
                let mut set = Vec::new();
                $(
                    if let Some(value) = self.$key {
                        set.push((stringify!($key), format!($words, value.in_words())));
                    }
                )+
                set
            }
        }
    };
}

settings! {
    /// MTU of the nodes' interfaces, bytes; those of pods and tunnels follow from it.
    mtu: u32, MTUS, "MTU {}";
    /// How nodes encrypt what pods send to those of other nodes.
    encryption: Encryption, (), "encrypted by {}";
    /// Whether devices merge what they receive (GRO).
    gro: bool, (), "GRO {}";
    /// Whether the stack segments as late as it can (GSO).
    gso: bool, (), "GSO {}";
    /// Whether devices segment TCP (TSO).
    tso: bool, (), "TSO {}";
    /// Whether devices compute and check checksums.
    checksum: bool, (), "checksum offload {}";
    /// Whether VXLAN puts a checksum into its UDP header.
    vxlan_checksum: bool, (), "VXLAN's UDP checksum {}";
    /// UDP ports that VXLAN spreads flows over.
    vxlan_source_ports: u32, 1..=16_384, "VXLAN's source ports: {}";
    /// Whether bridges of the nodes hand packets to netfilter.
    bridge_nf_call_iptables: bool, (), "bridge-nf-call-iptables {}";
    /// Whether the nodes track connections; false for rules that exempt the path's
    /// (`notrack`) where others have them tracked.
    conntrack: bool, (), "connection tracking {}";
    /// Whether devices spread what they receive over all CPUs (RPS).
    rps: bool, (), "RPS {}";
    /// Whether devices choose transmit queues by CPU (XPS).
    xps: bool, (), "XPS {}";
    /// Whether devices receive in threads of their own.
    threaded_napi: bool, (), "threaded NAPI {}";
    /// Packets that may wait for a device whose discipline asks for that.
    txqueuelen: u32, 1..=1_000_000, "txqueuelen {}";
    /// Reverse path filter of the nodes (RFC 3704): 0 for none, 1 strict, 2 loose.
    rp_filter: u32, 0..=2, "rp_filter {}";
    /// Bytes of the largest packet that the stack leaves to devices to segment; above
    /// 65,536 that is BIG TCP.
    gso_max_size: u32, PACKET_BYTES, "GSO up to {} bytes";
    /// Bytes of the largest packet that devices merge.
    gro_max_size: u32, PACKET_BYTES, "GRO up to {} bytes";
    /// Queueing discipline of the devices.
    qdisc: Qdisc, (), "qdisc {}";
    /// What each pod may send, and receive, in bits per second, as by the CNI plugin
    /// `bandwidth`.
    bandwidth: u64, (), "pods limited to {}";
    /// Whether TCP starts slowly again after a pause.
    tcp_slow_start_after_idle: bool, (), "slow start after idle {}";
    /// Bytes that the receive buffer of a connection may grow to: the third value of
    /// `net.ipv4.tcp_rmem`.
    tcp_rmem: u32, BUFFER_BYTES, "receive buffers up to {} bytes";
    /// The same of its send buffer: `net.ipv4.tcp_wmem`.
    tcp_wmem: u32, BUFFER_BYTES, "send buffers up to {} bytes";
    /// How TCP finds the rate of a path.
    tcp_congestion_control: CongestionControl, (), "congestion control {}";
}

/// In words: `GRO off, MTU 9000`.
impl fmt::Display for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set: Vec<String> = self.all_set().into_iter().map(|(_, words)| words).collect();
        f.write_str(&set.join(", "))
    }
}

impl Tuning {
    /// The sysctls of the endpoints that bound the buffers of connections, with their three
    /// values as the kernel shows them: the least and the first are the kernel's own, if the last
    /// is not less.
    pub fn buffers(&self) -> Vec<(&'static str, [u32; 3])> {
        let [receive, send] = [(self.tcp_rmem, 131_072), (self.tcp_wmem, 16_384)]
            .map(|(most, first): (Option<u32>, u32)| most.map(|it| [4_096, first.min(it), it]));
        let named = [("net.ipv4.tcp_rmem", receive), ("net.ipv4.tcp_wmem", send)];
        let set = named.into_iter();
        set.filter_map(|(name, values)| Some((name, values?)))
            .collect()
    }

    /// Whether packets may wait on the path for longer than a turn.
    pub(crate) fn holds_packets(&self) -> bool {
        self.bandwidth.is_some()
    }
}

/// A network of which something is set differently, under a name that is a level of the
/// factor `network` as any other.
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Variant {
    /// What it is called: `vxlan-no-gro`, or `vxlan+no-gro` where the section is of every
    /// network.
    pub name: String,
    /// What is set.
    pub tuning: Tuning,
}

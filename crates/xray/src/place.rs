//! Where the kernel shows packets.

use std::sync::Arc;

/// What the kernel did with a packet, or with its message, when it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hook {
    /// A program handed it to TCP.
    Sent,
    /// It is at the queueing discipline of a device.
    Queued,
    /// It is at the driver of a device.
    Transmitted,
    /// It was put into the receive queue of a CPU.
    Arrived,
    /// It was taken from there.
    Received,
    /// It was looked up in a routing table.
    Routed,
    /// It is at the socket that it is for.
    Delivered,
    /// That socket tells who waits for it.
    Ready,
    /// A program has it.
    Read,
}

impl Hook {
    /// The hook that the programs of `bpf/journey.c` call by this number.
    pub(crate) fn of(number: u32) -> Option<Self> {
        Some(match number {
            1 => Self::Sent,
            2 => Self::Queued,
            3 => Self::Transmitted,
            4 => Self::Arrived,
            5 => Self::Received,
            6 => Self::Routed,
            7 => Self::Delivered,
            8 => Self::Ready,
            9 => Self::Read,
            _ => return None,
        })
    }
}

/// A device, as far as it tells what crosses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    pub(crate) name: String,
    /// Its driver, such as `veth`; empty for loopback and for hardware.
    pub(crate) kind: String,
    /// Its queueing discipline.
    pub(crate) discipline: String,
    /// The driver of the device that it is a port of, such as `bridge`.
    pub(crate) port_of: Option<String>,
}

impl Device {
    /// Whether packets wait in front of it for their turn.
    pub(crate) fn has_queue(&self) -> bool {
        !matches!(self.discipline.as_str(), "" | "noqueue")
    }

    /// What it is called where it is a stretch of the path.
    pub(crate) fn word(&self) -> String {
        match (self.kind.as_str(), self.name.as_str()) {
            ("", "lo") => "loopback".to_owned(),
            ("", name) => name.to_owned(),
            (kind, _) => kind.to_owned(),
        }
    }

    /// Whether it shares the packets of another device without changing them.
    pub(crate) fn is_on_another(&self) -> bool {
        ["macvlan", "macvtap", "ipvlan", "ipvtap", "vlan"].contains(&&*self.kind)
    }

    /// Whether it puts packets into others, or takes them out.
    pub(crate) fn is_tunnel(&self) -> bool {
        const TUNNELS: &[&str] = &[
            "vxlan",
            "geneve",
            "gre",
            "gretap",
            "ip6gre",
            "ipip",
            "ip6tnl",
            "sit",
            "wireguard",
            "xfrm",
            "tun",
            "bareudp",
            "erspan",
            "vti",
        ];
        TUNNELS.contains(&self.kind.as_str())
    }
}

/// A place where a packet was seen.
#[derive(Clone, Debug)]
pub(crate) struct SeenAt {
    pub(crate) hook: Hook,
    /// Name of the namespace.
    pub(crate) namespace: Arc<str>,
    /// Whether that is a pod's, and not a node's.
    pub(crate) is_pod: bool,
    /// `None` at a socket, and for a device that has gone.
    pub(crate) device: Option<Arc<Device>>,
}

impl SeenAt {
    /// What its device is called; what stands for it where none is known.
    pub(crate) fn device_word(&self) -> String {
        let device = self.device.as_ref();
        device.map_or_else(|| "a device that is gone".to_owned(), |it| it.word())
    }
}

//! Where the kernel shows packets.

use std::sync::Arc;

use plumbline_protocol::{Hook, TracedDevice};

/// What a namespace is called that is of no end and of no node.
pub(crate) const ELSEWHERE: &str = "elsewhere";

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

impl From<TracedDevice> for Device {
    fn from(traced: TracedDevice) -> Self {
        Self {
            name: traced.name,
            kind: traced.kind,
            discipline: traced.discipline,
            port_of: traced.port_of,
        }
    }
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
    /// Name of the namespace; that of a cluster's pod is behind that of its node and a slash.
    pub(crate) namespace: Arc<str>,
    /// Whether that is a pod's, and not a node's.
    pub(crate) is_pod: bool,
    /// `None` at a socket, and for a device that has gone.
    pub(crate) device: Option<Arc<Device>>,
}

impl SeenAt {
    /// The node that it is on; `None` where that is not known.
    pub(crate) fn node(&self) -> Option<&str> {
        let node = self.namespace.split('/').next();
        node.filter(|_| !self.is_elsewhere())
    }

    /// Whether its namespace is of no end and of no node.
    pub(crate) fn is_elsewhere(&self) -> bool {
        &*self.namespace == ELSEWHERE
    }

    /// What its device is called; what stands for it where none is known.
    pub(crate) fn device_word(&self) -> String {
        let device = self.device.as_ref();
        device.map_or_else(|| "a device that is gone".to_owned(), |it| it.word())
    }
}

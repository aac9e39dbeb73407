//! Hops: what lies between two places where a packet was seen, by its name.
//!
//! Names come from what the two places are: the kinds of their devices, and the namespaces
//! that these are in.

use plumbline_protocol::Hook;
use serde::Serialize;

use crate::place::{ELSEWHERE, SeenAt};

/// What joins the nodes.
const UNDERLAY: &str = "underlay";

/// The same of a request and its answer together: what is between two kernels that have no clock
/// in common.
pub(crate) const UNDERLAY_BOTH_WAYS: &str = "underlay, both ways";

/// What the sender's calls take before TCP has the request and after the answer was copied, and
/// what its program does to take the time: both ways together.
pub(crate) const CALLS: &str = "system calls";

/// The same with the stack that it goes down, where that is not seen.
pub(crate) const CALLS_AND_STACK: &str = "stack and system calls";

/// The same with how long the sender's program takes to be woken: what is around its devices.
pub(crate) const SENDER: &str = "sender";

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Trip {
    /// From the sender until the receiver has it.
    Request,
    /// Back again.
    Answer,
}

/// A hop, and the mean time of those that took it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NamedHop {
    pub(crate) name: String,
    /// The namespace in which it begins.
    pub(crate) at: String,
    pub(crate) trip: Trip,
    pub(crate) ns: f64,
    /// Of that, what passes while a CPU works for the packet.
    pub(crate) cpu_ns: f64,
    /// Sights of a packet in it, each of which takes time.
    pub(crate) sights: f64,
    /// Those of them that are in `cpu_ns`.
    pub(crate) cpu_sights: f64,
}

impl NamedHop {
    /// One that takes no time.
    pub(crate) fn new(name: String, at: &str, trip: Trip) -> Self {
        Self {
            name,
            at: at.to_owned(),
            trip,
            ns: 0.0,
            cpu_ns: 0.0,
            sights: 0.0,
            cpu_sights: 0.0,
        }
    }

    /// The same as if a sight took no time, where each takes so long.
    pub(crate) fn unseen(&self, sight_ns: f64) -> Self {
        Self {
            ns: self.ns - self.sights * sight_ns,
            cpu_ns: self.cpu_ns - self.cpu_sights * sight_ns,
            ..self.clone()
        }
    }
}

/// The hops of a journey between places, each with the mean time that it took to get there
/// from the one before. Neighbours of one name are one hop. It begins on this trip.
pub(crate) fn hops(seen: &[(SeenAt, f64)], mut trip: Trip) -> Vec<NamedHop> {
    let mut hops: Vec<NamedHop> = Vec::new();
    // What looks at places of one stamp comes behind it, and is in the next step that takes time.
    let mut looks = 0.0;
    for at in 1..seen.len() {
        let ((before, _), (after, ns)) = (&seen[at - 1], &seen[at]);
        if before.hook == Hook::Read || is_turn(before, after) {
            trip = Trip::Answer;
        }
        let name = match before.is_elsewhere() || after.is_elsewhere() {
            true => beyond(seen, at).to_owned(),
            false if was_routed_below(seen, at) => "forward".to_owned(),
            false => name(before, after, seen.get(at + 1).map(|(place, _)| place)),
        };
        let is_work = f64::from(u8::from(!waits(before, after)));
        if !hops
            .last()
            .is_some_and(|it| it.name == name && it.trip == trip)
        {
            hops.push(NamedHop::new(name, &before.namespace, trip));
        }
        looks += 1.0;
        if let Some(hop) = hops.last_mut()
            && *ns > 0.0
        {
            hop.ns += ns;
            hop.cpu_ns += ns * is_work;
            hop.sights += looks;
            hop.cpu_sights += looks * is_work;
            looks = 0.0;
        }
    }
    hops
}

/// Whether a packet, or who is to read it, waits between two places. Between all others the
/// kernel or the program works for it without a break.
fn waits(before: &SeenAt, after: &SeenAt) -> bool {
    match (before.hook, after.hook) {
        (Hook::Arrived, Hook::Received) | (Hook::Ready | Hook::Delivered, Hook::Read) => true,
        (Hook::Queued, Hook::Transmitted) => {
            before.device.as_ref().is_some_and(|it| it.has_queue())
        }
        _ => false,
    }
}

/// Whether a packet that a bridge received goes on by the lookup that was made for it at the
/// bridge's port: netfilter makes one there (`br_netfilter`) when it translates an address.
fn was_routed_below(seen: &[(SeenAt, f64)], at: usize) -> bool {
    let ((before, _), (after, _)) = (&seen[at - 1], &seen[at]);
    let of_bridge = |place: &SeenAt| {
        let device = place.device.as_ref();
        device.is_some_and(|it| it.kind == "bridge")
    };
    let at_port = |place: &SeenAt| {
        let device = place.device.as_ref();
        place.hook == Hook::Routed
            && device.is_some_and(|it| it.port_of.as_deref() == Some("bridge"))
    };
    let earlier = seen[..at - 1].iter().rev().map(|(place, _)| place);
    let mut here = earlier.take_while(|it| it.namespace == before.namespace);
    (before.hook, after.hook) == (Hook::Received, Hook::Queued)
        && of_bridge(before)
        && here.any(at_port)
}

/// What a namespace belongs to that is of no end and of no node: to what joins the nodes, if a
/// packet goes through it from one to another.
fn beyond(seen: &[(SeenAt, f64)], at: usize) -> &'static str {
    let node = |(place, _): &(SeenAt, f64)| place.node().map(str::to_owned);
    let from = seen[..at].iter().rev().find_map(node);
    let to = seen[at..].iter().find_map(node);
    match from.is_some() && to.is_some() && from != to {
        true => UNDERLAY,
        false => ELSEWHERE,
    }
}

/// What lies between two places; `then` is the one after them.
fn name(before: &SeenAt, after: &SeenAt, then: Option<&SeenAt>) -> String {
    use Hook::{
        Arrived, Delivered, Filtered, Filtering, Queued, Read, Ready, Received, Routed, Sent,
        Transmitted,
    };

    match (before.hook, after.hook) {
        (Sent, Queued) => stack(before),
        // Without a queue a packet is at the driver at once, and that is part of the device.
        (Queued, Transmitted) => match (&before.device, then) {
            (Some(device), _) if device.has_queue() => format!("queue {}", device.discipline),
            (_, Some(then)) => name(after, then, None),
            (_, None) => leaving(before),
        },
        (Transmitted, Arrived | Received) => crossing(before, after),
        (Transmitted, _) => before.device_word(),
        (Arrived, Received) => "receive".to_owned(),
        // Of taps, which do not see what is between the devices of a node.
        (Arrived, Arrived) => handing_on(before, after),
        (Arrived, Transmitted) if is_turn(before, after) => "receiver".to_owned(),
        (Arrived, Transmitted) => match handing_on(before, after).as_str() {
            "redirect" => "node: receive to forward".to_owned(),
            over => format!("node: receive, {over}"),
        },
        (Received, Routed) if before.is_pod => stack(before),
        (Received, Routed | Filtering) => "prerouting".to_owned(),
        (Filtering, Filtered) => "netfilter".to_owned(),
        (Filtered, Routed) => "route".to_owned(),
        (Routed | Filtered, Filtering | Queued) => "forward".to_owned(),
        (Received | Routed, Delivered) => stack(after),
        (Received | Routed, _) => handing_on(before, after),
        (Delivered, Ready) => stack(after),
        (Ready, Read) => "wake-up".to_owned(),
        (Delivered, Read) => "stack and wake-up".to_owned(),
        (Read, Sent) => "responder".to_owned(),
        (Read, Queued) => "stack and responder".to_owned(),
        (before, after) => format!("{before:?} to {after:?}").to_lowercase(),
    }
}

/// Whether a device sends what comes back for what it received.
fn is_turn(before: &SeenAt, after: &SeenAt) -> bool {
    (before.hook, after.hook) == (Hook::Arrived, Hook::Transmitted)
        && before.namespace == after.namespace
        && before.device == after.device
}

fn stack(place: &SeenAt) -> String {
    let of = if place.is_pod { "pod" } else { "node" };
    format!("{of} stack")
}

/// What a packet is in that was seen last when a device without a queue of its own took it.
fn leaving(before: &SeenAt) -> String {
    let is_tunnel = before.device.as_ref().is_some_and(|it| it.is_tunnel());
    match before.is_pod || is_tunnel {
        true => before.device_word(),
        false => UNDERLAY.to_owned(),
    }
}

/// From one end of a pair of devices to the other.
fn crossing(before: &SeenAt, after: &SeenAt) -> String {
    let between_nodes = !before.is_pod && !after.is_pod && before.namespace != after.namespace;
    let is_tunnel = before.device.as_ref().is_some_and(|it| it.is_tunnel());
    if between_nodes && !is_tunnel {
        return UNDERLAY.to_owned();
    }
    before.device_word()
}

/// From a device that received a packet to another one, without a route.
fn handing_on(before: &SeenAt, after: &SeenAt) -> String {
    let port_of = |place: &SeenAt| place.device.as_ref().and_then(|it| it.port_of.clone());
    let comes_in = matches!(after.hook, Hook::Arrived | Hook::Received);
    match (port_of(before), &after.device) {
        (Some(bridge), Some(next)) if next.kind == bridge || next.port_of.is_some() => bridge,
        (_, Some(next)) if comes_in && next.is_tunnel() => "decapsulation".to_owned(),
        (_, Some(next)) if comes_in && next.is_on_another() => next.kind.clone(),
        _ => "redirect".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::place::Device;
    use plumbline_protocol::Hook::{
        Arrived, Delivered, Filtered, Filtering, Queued, Read, Ready, Received, Routed, Sent,
        Transmitted,
    };

    fn device(name: &str, kind: &str, port_of: Option<&str>) -> Option<Arc<Device>> {
        Some(Arc::new(Device {
            name: name.to_owned(),
            kind: kind.to_owned(),
            discipline: "noqueue".to_owned(),
            port_of: port_of.map(str::to_owned),
        }))
    }

    fn at(namespace: &str, hook: Hook, device: Option<Arc<Device>>) -> SeenAt {
        SeenAt {
            hook,
            namespace: namespace.into(),
            is_pod: namespace.starts_with("pod"),
            device,
        }
    }

    /// A request from a pod over a bridge, a tunnel and a wire to a socket on the other node.
    fn journey() -> Vec<SeenAt> {
        let pod = || device("eth0", "veth", None);
        let port = || device("veth1", "veth", Some("bridge"));
        let bridge = || device("br0", "bridge", None);
        let tunnel = || device("vxlan1", "vxlan", None);
        let wire = || device("eth0", "veth", None);
        vec![
            at("pod1", Sent, None),
            at("pod1", Queued, pod()),
            at("pod1", Transmitted, pod()),
            at("node1", Arrived, port()),
            at("node1", Received, port()),
            at("node1", Received, bridge()),
            at("node1", Routed, bridge()),
            at("node1", Queued, tunnel()),
            at("node1", Transmitted, tunnel()),
            at("node1", Queued, wire()),
            at("node1", Transmitted, wire()),
            at("node2", Arrived, wire()),
            at("node2", Received, wire()),
            at("node2", Routed, wire()),
            at("node2", Received, tunnel()),
            at("node2", Delivered, None),
            at("node2", Ready, None),
            at("node2", Read, None),
            at("node2", Sent, None),
            at("node2", Queued, wire()),
        ]
    }

    fn named(places: Vec<SeenAt>) -> Vec<NamedHop> {
        let each_a_nanosecond: Vec<_> = places.into_iter().map(|place| (place, 1.0)).collect();
        hops(&each_a_nanosecond, Trip::Request)
    }

    #[test]
    fn hops_are_called_by_the_places_between_which_they_lie() {
        let hops = named(journey());
        let names: Vec<_> = hops.iter().map(|hop| (&*hop.name, hop.ns)).collect();
        assert_eq!(
            names,
            [
                ("pod stack", 1.0),
                ("veth", 2.0),
                ("receive", 1.0),
                ("bridge", 1.0),
                ("prerouting", 1.0),
                ("forward", 1.0),
                ("vxlan", 2.0),
                ("underlay", 2.0),
                ("receive", 1.0),
                ("prerouting", 1.0),
                ("decapsulation", 1.0),
                ("node stack", 2.0),
                ("wake-up", 1.0),
                ("responder", 1.0),
                ("node stack", 1.0),
            ]
        );
        assert_eq!(hops[4].at, "node1");
        assert_eq!(hops[12].trip, Trip::Request);
        assert_eq!(hops[13].trip, Trip::Answer);
    }

    #[test]
    fn what_earlier_kernels_do_not_show_is_in_the_hop_beside_it() {
        let mut places = journey();
        places.retain(|it| !matches!(it.hook, Sent | Ready));
        let hops = named(places);
        let [first, .., waking, last] = &hops[..] else {
            panic!("{hops:?}")
        };
        assert_eq!((&*first.name, first.trip), ("veth", Trip::Request));
        assert_eq!(
            (&*waking.name, waking.trip),
            ("stack and wake-up", Trip::Request)
        );
        assert_eq!(
            (&*last.name, last.trip),
            ("stack and responder", Trip::Answer)
        );
    }

    #[test]
    fn netfilter_is_a_hop_of_its_own_where_its_hooks_are_seen() {
        let mut places = journey();
        let routed = places.iter().position(|it| it.hook == Routed).unwrap();
        let bridge = || device("br0", "bridge", None);
        let hook = || [Filtering, Filtered].map(|it| at("node1", it, bridge()));
        places.splice(routed + 1..=routed, [hook(), hook()].concat());
        places.splice(routed..routed, hook());
        let names: Vec<_> = named(places).into_iter().map(|hop| hop.name).collect();
        assert_eq!(
            names[4..12],
            [
                "prerouting",
                "netfilter",
                "route",
                "forward",
                "netfilter",
                "forward",
                "netfilter",
                "forward",
            ]
        );
    }

    #[test]
    fn what_was_routed_at_a_port_is_forwarded_by_the_bridge() {
        let mut places = journey();
        let routed = places.iter().position(|it| it.hook == Routed).unwrap();
        // From the bridge to its port, before it.
        let port = places[routed - 2].device.clone();
        places.remove(routed);
        places.insert(routed - 1, at("node1", Routed, port));
        let names: Vec<_> = named(places).into_iter().map(|hop| hop.name).collect();
        assert_eq!(
            names[3..7],
            ["prerouting", "bridge", "forward", "vxlan"],
            "{names:?}"
        );
    }

    #[test]
    fn all_the_time_between_places_is_in_hops() {
        let places = journey();
        let steps = places.len() - 1;
        let sum: f64 = named(places).iter().map(|hop| hop.ns).sum();
        assert_eq!(sum, steps as f64);
    }

    #[test]
    fn what_waits_takes_no_cpu() {
        let mut places = journey();
        let hops = named(places.clone());
        let idle = hops.iter().filter(|hop| hop.cpu_ns == 0.0);
        let idle: Vec<_> = idle.map(|hop| &*hop.name).collect();
        assert_eq!(idle, ["receive", "receive", "wake-up"]);
        let worked = hops.iter().filter(|hop| hop.cpu_ns > 0.0);
        assert!(worked.into_iter().all(|hop| hop.cpu_ns == hop.ns));
        // The pod's device, with a queue.
        let device = places[1].device.as_mut().unwrap();
        Arc::make_mut(device).discipline = "fq".to_owned();
        let hops = named(places);
        assert_eq!((&*hops[1].name, hops[1].cpu_ns), ("queue fq", 0.0));
    }

    #[test]
    fn without_a_tunnel_there_is_no_hop_of_one() {
        let mut places = journey();
        places.retain(|it| it.device.as_ref().is_none_or(|it| it.kind != "vxlan"));
        let names: Vec<_> = named(places).into_iter().map(|hop| hop.name).collect();
        assert!(
            !names
                .iter()
                .any(|name| name == "vxlan" || name == "decapsulation")
        );
        assert!(names.iter().any(|name| name == "bridge"));
    }

    #[test]
    fn what_taps_cannot_tell_apart_is_one_hop() {
        let pod = || device("eth0", "veth", None);
        let wire = || device("eth0", "veth", None);
        let (tunnel, port) = (
            device("vxlan1", "vxlan", None),
            device("veth1", "veth", None),
        );
        let hops = named(vec![
            at("pod1", Transmitted, pod()),
            at("node1", Arrived, port),
            at("node1", Transmitted, tunnel.clone()),
            at("node1", Transmitted, wire()),
            at("node2", Arrived, wire()),
            at("node2", Arrived, tunnel.clone()),
            at("node2", Transmitted, tunnel),
            at("node2", Transmitted, wire()),
        ]);
        let names: Vec<_> = hops.iter().map(|hop| (&*hop.name, hop.trip)).collect();
        assert_eq!(
            names,
            [
                ("veth", Trip::Request),
                ("node: receive to forward", Trip::Request),
                ("vxlan", Trip::Request),
                ("underlay", Trip::Request),
                ("decapsulation", Trip::Request),
                ("receiver", Trip::Answer),
                ("vxlan", Trip::Answer),
            ]
        );
    }

    #[test]
    fn a_queueing_discipline_is_a_hop_of_its_own() {
        let mut places = journey();
        for place in &mut places {
            if let Some(device) = &mut place.device
                && device.kind == "veth"
            {
                Arc::make_mut(device).discipline = "netem".to_owned();
            }
        }
        let hops = named(places);
        assert_eq!((&*hops[1].name, &*hops[2].name), ("queue netem", "veth"));
    }

    #[test]
    fn what_is_of_no_node_is_the_underlay_only_between_two() {
        let wire = || device("eth0", "veth", None);
        let port = || device("lan1", "veth", Some("bridge"));
        let names = |to: &str| -> Vec<(String, f64)> {
            let hops = named(vec![
                at("node1", Queued, wire()),
                at("node1", Transmitted, wire()),
                at("elsewhere", Arrived, port()),
                at("elsewhere", Received, port()),
                at("elsewhere", Transmitted, None),
                at(to, Arrived, wire()),
                at(to, Received, wire()),
            ]);
            hops.into_iter().map(|hop| (hop.name, hop.ns)).collect()
        };
        let called = |name: &str, ns| (name.to_owned(), ns);
        let between = names("node2/client-pod");
        assert_eq!(between, [called("underlay", 5.0), called("receive", 1.0)]);
        let beside = names("node1/client-pod");
        assert_eq!(beside[1], called("elsewhere", 4.0));
    }
}

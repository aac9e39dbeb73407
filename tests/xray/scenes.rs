//! Hops of other scenes than a pair of pods on two nodes over IPv4, and of a network that hands
//! packets on by eBPF.

use serde_json::Value;

use super::{hops, is_called, is_shown};
use crate::world::{lab, lab_as_root, output, skip, stderr};

/// One short look at a network; what it says where there was nothing to see, as on a machine that
/// others have.
fn glance(arguments: &[&str]) -> Result<Value, String> {
    let order = ["xray", "--rounds", "1", "--json", "--network"];
    let output = output(&[&order[..], arguments].concat());
    if !output.status.success() {
        return Err(stderr(&output));
    }
    Ok(serde_json::from_slice(&output.stdout).expect("JSON"))
}

/// How many hops have this word in their names, on the way there and back.
fn each_way(network: &Value, word: &str) -> [usize; 2] {
    ["request", "answer"].map(|trip| {
        let of_trip = hops(network).iter().filter(|hop| hop["trip"] == trip);
        of_trip.filter(|hop| is_called(hop, word)).count()
    })
}

/// Has one of five short looks show so many hops of each word, both ways alike; the words may
/// depend on what looked.
#[track_caller]
fn shows(arguments: &[&str], wanted: fn(&str) -> &'static [(&'static str, usize)]) {
    is_shown(|| {
        let found = match glance(arguments) {
            Ok(found) => found,
            Err(said) => return (false, said),
        };
        let by = found["by"].as_str().expect("a word");
        let network = &found["networks"][0];
        let is_alike = |(word, count): &(&str, usize)| each_way(network, word) == [*count; 2];
        (wanted(by).iter().all(is_alike), found.to_string())
    });
}

#[test]
fn ipv6_is_followed_through_the_same_hops() {
    let test = "IPv6 is followed";
    let Some(_alone) = lab(test) else {
        return;
    };
    if !std::path::Path::new("/proc/net/if_inet6").exists() {
        return skip(test, "this kernel has no IPv6");
    }
    // Each node routes. Taps see no route apart.
    shows(&["host-gw", "--family", "6"], |by| match by {
        "taps" => &[("node: receive to forward", 2), ("bridge", 2), ("veth", 2)],
        _ => &[
            ("prerouting", 2),
            ("forward", 2),
            ("bridge", 2),
            ("veth", 2),
            ("underlay", 1),
        ],
    });
}

#[test]
fn between_pods_of_one_node_there_is_a_bridge_and_no_route() {
    let Some(_alone) = lab("pods of one node") else {
        return;
    };
    shows(&["host-gw", "--placement", "same-node"], |_| {
        &[
            ("bridge", 1),
            ("veth", 2),
            ("underlay", 0),
            ("prerouting", 0),
            ("forward", 0),
        ]
    });
}

/// Programs of Cilium hand packets of pods to the tunnel, and those that come to the pod.
#[test]
fn what_ebpf_hands_on_is_a_redirect() {
    let test = "what eBPF hands on is a redirect";
    let Some(_alone) = lab_as_root(test, "an ordinary user may not load eBPF") else {
        return;
    };
    shows(&["cilium-vxlan"], |_| {
        &[
            ("redirect", 1),
            ("vxlan", 1),
            ("decapsulation", 1),
            ("forward", 0),
            ("bridge", 0),
        ]
    });
    // At the tracepoints the pod has them at once; between devices, where taps are, they are seen
    // to be handed on.
    shows(&["cilium", "--taps"], |_| {
        &[("redirect", 1), ("underlay", 1), ("bridge", 0)]
    });
}

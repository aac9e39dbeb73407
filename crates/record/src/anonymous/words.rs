//! Words that say nothing of whose record it is.

use plumbline_experiment::ready_made;

/// Names of networks, systems, devices, programs and kinds of load, and what stands
/// between them.
const WORDS: &[&str] = &[
    "added",
    "address",
    "amd",
    "antrea",
    "arm",
    "aside",
    "aws",
    "backends",
    "bandwidth",
    "bond",
    "br",
    "bridge",
    "cali",
    "calico",
    "canal",
    "cilium",
    "client",
    "closed",
    "cluster",
    "cni",
    "colocated",
    "connection",
    "container",
    "crr",
    "daemon",
    "datagram",
    "default",
    "device",
    "docker",
    "drop",
    "ebpf",
    "endpoint",
    "endpoints",
    "ens",
    "eth",
    "fastdp",
    "firewall",
    "flannel",
    "gateway",
    "geneve",
    "gre",
    "gw",
    "headless",
    "host",
    "hosts",
    "http",
    "idle",
    "image",
    "ip",
    "ipip",
    "ipsec",
    "iptables",
    "ipv",
    "ipvlan",
    "ipvs",
    "keep",
    "alive",
    "kindnet",
    "kopeio",
    "kube",
    "kubelet",
    "kubernetes",
    "l",
    "lab",
    "large",
    "launch",
    "lo",
    "load",
    "local",
    "macvlan",
    "member",
    "members",
    "mesh",
    "ms",
    "new",
    "nft",
    "nftables",
    "nginx",
    "no",
    "node",
    "ns",
    "or",
    "other",
    "ovn",
    "ovs",
    "pairs",
    "pod",
    "pods",
    "policies",
    "policy",
    "port",
    "portmap",
    "programming",
    "proxy",
    "ptp",
    "rc",
    "removed",
    "roce",
    "romana",
    "route",
    "routed",
    "router",
    "rr",
    "run",
    "s",
    "same",
    "server",
    "service",
    "services",
    "sleeve",
    "small",
    "softnet",
    "static",
    "steal",
    "step",
    "stream",
    "survive",
    "sysctls",
    "tcp",
    "the",
    "first",
    "second",
    "sender",
    "receiver",
    "tun",
    "tuning",
    "tunl",
    "udp",
    "uml",
    "us",
    "v",
    "veth",
    "vlan",
    "vpc",
    "vxlan",
    "weave",
    "wg",
    "while",
    "wireguard",
    "x",
    "plumbline",
    "cross",
    "pani",
];

/// Longest number that may stand in a name: longer ones may be those of an account.
const DIGITS: usize = 5;

/// Words that pseudonyms begin with. With a number behind them they name one thing.
const NUMBERED: [&str; 3] = ["node-", "host-", "server-"];

/// Whether a name consists of such words and of short numbers, and is neither an address
/// nor like a pseudonym.
pub(super) fn are_of_the_trade(name: &str) -> bool {
    let is_address = |word: &str| {
        let dots = word.matches('.').count();
        dots > 2 || word.matches(':').count() > 1 || dots > 0 && word.contains('/')
    };
    let mut parts = name.split(|it: char| !it.is_alphanumeric()).flat_map(runs);
    let is_known = |part: &str| match part.chars().all(|it| it.is_ascii_digit()) {
        true => part.len() <= DIGITS,
        false => WORDS.contains(&part),
    };
    let is_numbered = |word: &&str| {
        let mut found = name.match_indices(*word).map(|(at, _)| at + word.len());
        found.any(|end| name[end..].starts_with(|it: char| it.is_ascii_digit()))
    };
    let names_one =
        name.split(char::is_whitespace).any(is_address) || NUMBERED.iter().any(is_numbered);
    !names_one && parts.all(is_known)
}

/// Letters and digits of a word apart: `eth0` is `eth` and `0`.
fn runs(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        let is_digit = |it: char| it.is_ascii_digit();
        let begins = rest.starts_with(is_digit);
        let end = rest.find(|it| is_digit(it) != begins).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        rest = after;
        (!run.is_empty()).then_some(run)
    })
}

/// Whether a text, or the value of a key, comes with the program: a ready-made experiment.
pub(super) fn are_published(text: &str) -> bool {
    let quoted = format!("= \"{text}\"\n");
    let mut all = ready_made().iter();
    all.any(|(_, published)| *published == text || published.contains(&quoted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_trade_are_known_by_their_words() {
        for name in [
            "vxlan",
            "ipvlan-l3s",
            "calico/cluster-ip:3",
            "eth0",
            "host#2 same-node",
            "",
        ] {
            assert!(are_of_the_trade(name), "{name}");
        }
        for name in [
            "gke_acme_europe-west1_prod",
            "10.1.2.3",
            "10.1.0.0/16",
            "fd00::1",
            "host 192.168.1.7",
            "joe@db7",
            "123456789012",
            "Host",
            "kube-node-7",
        ] {
            assert!(!are_of_the_trade(name), "{name}");
        }
    }

    #[test]
    fn what_comes_with_the_program_is_published() {
        let (_, tour) = ready_made()[0];
        for text in [
            tour,
            "tour",
            "350B-30",
            "Do the networks stand in the order that MachineZone published in 2016?",
        ] {
            assert!(are_published(text), "{text}");
        }
        for text in ["a", "our own question", "tour2"] {
            assert!(!are_published(text), "{text}");
        }
    }
}

//! The shapes and counts of what enforcers write.

use plumbline_experiment::PolicyPosition;

use super::rule_text::{COMMENT, PIECE};
use super::*;

const PORT: u16 = 7_000;
const COUNTS: [u32; 4] = [0, 1, 10, 200];

/// How many of each there are.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    chains: usize,
    rules: usize,
    sets: usize,
    members: usize,
}

fn policies(count: u32, enforcer: Enforcer) -> Policies {
    Policies {
        count,
        enforcer,
        ..Policies::default()
    }
}

/// The receiver, guarded by policies for what comes to it.
fn receiver(policies: &Policies, family: Family) -> GuardedPod {
    let addressing = Addressing::new(family);
    GuardedPod {
        address: addressing.pod(2, 0),
        device: "veth2".to_owned(),
        ingress: peers(policies, addressing.pod(1, 0), addressing),
        egress: Vec::new(),
    }
}

fn written(count: u32, enforcer: Enforcer) -> RuleText {
    let pod = receiver(&policies(count, enforcer), Family::V4);
    rules_of(enforcer, &[pod], PORT, Family::V4)
}

fn counts(text: &RuleText) -> Counts {
    let begin = |text: &str, word: &str| text.lines().filter(|it| it.starts_with(word)).count();
    let nft = text.nft.concat();
    let found = |word: &str| {
        let lines = nft.lines().map(|it| it.trim().trim_start_matches("add "));
        lines.filter(|it| it.starts_with(word)).count()
    };
    let keys = nft.matches(" : return").count();
    let is_rule = |line: &&str| line.starts_with("\t\t") && !line.contains(['{', '}', ';']);
    let jumps = nft.lines().filter(|it| it.contains(" : jump ")).count();
    let types = found("typeof ");
    let added = nft.lines().filter(|it| it.starts_with("add element "));
    let added: usize = added.map(|it| it.split(',').count()).sum();
    Counts {
        chains: begin(&text.iptables, ":") + found("chain "),
        rules: begin(&text.iptables, "-A ") + nft.lines().filter(is_rule).count() - types
            + jumps
            + found("rule "),
        sets: begin(&text.ipset, "create ") + found("map ") + found("set "),
        members: begin(&text.ipset, "add ") + keys + added,
    }
}

/// What Felix writes for one pod, by its own tests (projectcalico/calico,
/// `felix/rules/endpoints_test.go`@018210c): 4 rules in the chain to a pod without policies
/// and profiles, 6 in the one from it; 14 with two policies that are no group and two
/// profiles, of which a policy has 2; a group of six has 7 rules, one of seven has 8.
fn rules_of_calico(n: usize) -> usize {
    let (to_pod, from_pod) = (4, 6);
    let two_profiles = 2 * 2;
    let tier = if n > 0 { 14 - 4 - two_profiles - 2 } else { 0 };
    let group = if n > 1 { n + (n - 1) / 5 } else { 0 };
    // A rule for each policy and each profile.
    to_pod + from_pod + 2 * two_profiles + tier + group + n + 4
}

/// By the sources that each file names.
#[test]
fn each_system_writes_as_much_as_it_does() {
    for n in COUNTS {
        let n = n as usize;
        let some = usize::from(n > 0);
        let none = usize::from(n == 0);
        let expected = |enforcer| match enforcer {
            // A chain and its map; known, the jump, the look-up, the drop.
            Enforcer::Own | Enforcer::Nft => Counts {
                chains: 1 + some,
                rules: 1 + 3 * some,
                sets: some,
                members: n,
            },
            // Known, the jump, a rule each, the drop.
            Enforcer::Iptables => Counts {
                chains: some,
                rules: 1 + (n + 2) * some,
                ..Counts::default()
            },
            // Three chains with four rules each, the jump among them; two sets. Without
            // any, the policy of a tenant that is not isolated.
            Enforcer::Romana => Counts {
                chains: 4 + 3 * n + 2 * none,
                rules: 9 + 4 * n + 3 * none,
                sets: 2 + 2 * n,
                members: 2 + n,
            },
            // The chains of tenant and segment; two chains with three rules each.
            Enforcer::Romana1 => Counts {
                chains: 7 + 2 * n.max(1),
                rules: 9 + 6 + 3 * n.max(1),
                ..Counts::default()
            },
            // Per policy a chain with two rules, a jump and two sets.
            Enforcer::KubeRouter => Counts {
                chains: 7 + n,
                rules: 3 + 7 + 3 * n + 7 + none + 7 + 6,
                sets: 2 * n,
                members: 2 * n,
            },
            // A rule and a set each, and the set of those that are selected.
            Enforcer::WeaveNpc => Counts {
                chains: 7,
                rules: 14 + 3 + 6 + n,
                sets: 2 + some + n,
                members: 1 + n + 1,
            },
            // The jump and what follows it; four chains and two that find the pod's two,
            // two of profiles each way, a group.
            Enforcer::CalicoIptables | Enforcer::CalicoIptablesNft => Counts {
                chains: 4 + 2 + 2 + 4 + usize::from(n > 1) + n,
                rules: 3 + 6 + 4 + rules_of_calico(n),
                sets: n,
                members: n,
            },
            // One more chain, that of the hook, and two maps with a device each.
            Enforcer::CalicoNftables => Counts {
                chains: 5 + 2 + 2 + 4 + usize::from(n > 1) + n,
                rules: 3 + 6 + 4 + rules_of_calico(n),
                sets: n + 2,
                members: n + 2,
            },
            // Their programs are counted beside them.
            Enforcer::CalicoEbpf | Enforcer::Cilium => Counts::default(),
        };
        for enforcer in Enforcer::ALL.iter().copied() {
            let text = written(n as u32, enforcer);
            let found = counts(&text);
            assert_eq!(found, expected(enforcer), "{enforcer:?} {n}:\n{text:?}");
            let said = (
                text.chains as usize,
                text.rules as usize,
                text.elements as usize,
            );
            assert_eq!(said, (found.chains, found.rules, found.members));
        }
    }
}

#[test]
fn one_policy_has_the_other_end_among_its_peers() {
    let addressing = Addressing::new(Family::V4);
    let far = addressing.pod(1, 0);
    for (position, at) in PolicyPosition::ALL.iter().zip([0, 4, 9]) {
        let policies = Policies {
            position: *position,
            members: 3,
            ..policies(10, Enforcer::Nft)
        };
        let peers = peers(&policies, far, addressing);
        let with_far = peers
            .iter()
            .enumerate()
            .filter(|(_, it)| it.all.contains(&far));
        assert_eq!(with_far.map(|(at, _)| at).collect::<Vec<_>>(), [at]);
        assert!(peers.iter().all(|it| it.all.len() == 3));
        let mut all: Vec<_> = peers.into_iter().flat_map(|it| it.all).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 30, "no address is there twice");
    }
}

/// A rule for each address, as Felix makes of an `ipBlock`, and a set for the other end.
#[test]
fn calico_has_addresses_in_its_rules() {
    let of_addresses = |enforcer| {
        let policies = Policies {
            peers: PolicyPeers::Addresses,
            members: 2,
            ..policies(2, enforcer)
        };
        let pod = receiver(&policies, Family::V4);
        rules_of(enforcer, &[pod], PORT, Family::V4)
    };
    let text = of_addresses(Enforcer::CalicoIptables);
    let policy = |number: u32| rules_in(&text.iptables, &format!("-A cali-pi-{number} "));
    let allows = |peer: &str| {
        format!(
            "{COMMENT} {COMMENT} -p tcp {peer} -m multiport --destination-ports 7000 -j MARK \
             --set-mark 0x10000/0x10000"
        )
    };
    let returns = format!("{COMMENT} {COMMENT} -m mark --mark 0x10000/0x10000 -j RETURN");
    let addressing = Addressing::new(Family::V4);
    let address = |it| allows(&format!("--source {}", addressing.stranger(it)));
    assert_eq!(policy(0), [address(0), returns.clone(), address(1)]);
    let set = allows("-m set --match-set cali40s:0 src");
    assert_eq!(policy(1), [set, returns, address(2)]);
    assert_eq!(text.elements, 1);
    let nft = of_addresses(Enforcer::CalicoNftables).nft.concat();
    let allowed = format!(
        "meta l4proto tcp ip saddr {} tcp dport {{ 7000 }} counter meta mark set meta mark | 0x10000",
        addressing.stranger(1)
    );
    let chain = rules_in(&nft, "add rule ip calico filter-cali-pi-0 ");
    assert_eq!(chain.last(), Some(&allowed));
}

/// Of the same lines, in pieces that an ordinary user may send.
#[test]
fn calico_is_the_same_in_the_tables_of_nftables() {
    let lines = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|it| it.starts_with([':', '-']));
        lines.map(str::to_owned).collect()
    };
    let one = written(1_000, Enforcer::CalicoIptables).iptables;
    let other = written(1_000, Enforcer::CalicoIptablesNft).iptables;
    assert_eq!(lines(&one), lines(&other));
    assert_eq!(one.matches("COMMIT\n").count(), 1);
    let pieces = lines(&other).len().div_ceil(PIECE);
    assert_eq!(other.matches("*filter\n").count(), pieces);
}

/// `u32` compares an address with all bits but those of the node.
#[test]
fn romana_1_tells_pods_apart_by_bits() {
    let text = written(1, Enforcer::Romana1).iptables;
    assert!(
        text.contains("-m u32 --u32 \"0xc&0xff00ffff=0xc6000102\" -j ROMANA-P-000000000000-IN_0"),
        "{text}"
    );
    assert!(text.contains("\"0x10&0xff00ff00=0xc6000200\" -j ROMANA-FW-T0"));
}

/// All sets at once would be refused where those of `ipvs` stand beside them.
#[test]
fn sets_of_policies_go_without_those_of_services() {
    for enforcer in [
        Enforcer::Romana,
        Enforcer::KubeRouter,
        Enforcer::WeaveNpc,
        Enforcer::CalicoIptables,
    ] {
        let text = written(3, enforcer);
        let removal = no_sets(&text.ipset, true);
        let removed = removal.lines().filter(|it| it.starts_with("destroy "));
        assert_eq!(
            removed.count(),
            counts(&text).sets,
            "{enforcer:?}: {removal}"
        );
        assert_eq!(no_sets(&text.ipset, false), "destroy\n");
    }
}

/// What no policy selects is let through, also beside pods that are guarded.
#[test]
fn other_pods_are_guarded_beside_ours() {
    for enforcer in Enforcer::ALL.iter().copied() {
        let policies = Policies {
            selects: Selected::Others,
            ..policies(10, enforcer)
        };
        let other = receiver(&policies, Family::V4);
        let ours = GuardedPod {
            address: Addressing::new(Family::V4).pod(2, 1),
            device: "veth1".to_owned(),
            ingress: Vec::new(),
            ..other.clone()
        };
        let with = rules_of(enforcer, &[ours.clone(), other], PORT, Family::V4);
        let address = ours.address.to_string();
        let allows = match enforcer {
            // What is not among the guarded is accepted by the policy of the hook.
            Enforcer::Own | Enforcer::Nft => !with.nft.concat().contains(&address),
            Enforcer::Iptables => !with.iptables.contains(&address),
            Enforcer::Romana => with.iptables.contains("_X -j ACCEPT"),
            Enforcer::Romana1 => with.iptables.contains("-IN_0  -j ACCEPT"),
            Enforcer::KubeRouter => with
                .iptables
                .contains(&format!("-d {address} {COMMENT} -j KUBE-NWPLCY-DEFAULT")),
            Enforcer::WeaveNpc => with
                .ipset
                .contains(&format!("add weave-ingress-default-allow {address}\n")),
            // The profile of its namespace, before any drop.
            Enforcer::CalicoIptables | Enforcer::CalicoIptablesNft => {
                rules_in(&with.iptables, "-A cali-tw-veth1 ")[3..]
                    .starts_with(&[format!("{COMMENT} -j cali-pri-kns.plumbline")])
            }
            Enforcer::CalicoNftables => {
                let chain = "add rule ip calico filter-cali-tw-veth1 ";
                rules_in(&with.nft.concat(), chain)[3..]
                    .starts_with(&["counter jump filter-cali-pri-kns.plumbline".to_owned()])
            }
            // The program of a pod knows of no other.
            Enforcer::CalicoEbpf | Enforcer::Cilium => loader(enforcer).is_some(),
        };
        assert!(allows, "{enforcer:?}: {with:?}");
    }
}

/// What stands behind these words, in their order.
fn rules_in(text: &str, chain: &str) -> Vec<String> {
    let rules = text.lines().filter_map(|line| line.strip_prefix(chain));
    rules.map(str::to_owned).collect()
}

/// As `PolicyGroupToIptablesChains` has it: all but the first of five ask whether one before
/// has decided, and between the fives one returns if so.
#[test]
fn a_group_of_calico_looks_for_a_verdict_at_every_fifth() {
    let text = written(7, Enforcer::CalicoIptables).iptables;
    let group = rules_in(&text, "-A cali-gi-veth2 ");
    let undecided = "-m mark --mark 0/0x30000";
    let jump = |at: usize| match at % 5 {
        0 => format!("{COMMENT} -j cali-pi-{at}"),
        _ => format!("{COMMENT} {undecided} -j cali-pi-{at}"),
    };
    let mut wanted: Vec<String> = (0..7).map(jump).collect();
    wanted.insert(
        5,
        format!("{COMMENT} {COMMENT} -m mark ! --mark 0/0x30000 -j RETURN"),
    );
    assert_eq!(group, wanted);
    let policy = rules_in(&text, "-A cali-pi-6 ");
    assert_eq!(
        policy,
        [format!(
            "{COMMENT} {COMMENT} -p tcp -m set --match-set cali40s:6 src \
             -m multiport --destination-ports 7000 -j MARK --set-mark 0x10000/0x10000"
        )]
    );
    // One alone is asked by the pod's chain itself.
    let one = written(1, Enforcer::CalicoIptables).iptables;
    assert!(!one.contains("cali-gi-"), "{one}");
    let nft = written(7, Enforcer::CalicoNftables).nft.concat();
    assert_eq!(
        rules_in(&nft, "add rule ip calico filter-cali-gi-veth2 ")[4..7],
        [
            "meta mark & 0x30000 == 0 counter jump filter-cali-pi-4",
            "meta mark & 0x30000 != 0 counter return",
            "counter jump filter-cali-pi-5",
        ]
    );
}

/// Devices that share the next letter have a chain for it, as in `dispatch_test.go`.
#[test]
fn calico_finds_devices_by_their_next_letter() {
    let pod = receiver(&policies(1, Enforcer::CalicoIptables), Family::V4);
    let of = |device: &str| GuardedPod {
        device: device.to_owned(),
        ..pod.clone()
    };
    let pods = [of("cali1a"), of("cali1b"), of("cali2c")];
    let text = rules_of(Enforcer::CalicoIptables, &pods, PORT, Family::V4).iptables;
    let found = |chain: &str| rules_in(&text, &format!("-A {chain} "));
    let goto = |device: &str, chain: &str| format!("-o {device} {COMMENT} -g {chain}");
    let unknown = format!("{COMMENT} {COMMENT} -j DROP");
    assert_eq!(
        found("cali-to-wl-dispatch"),
        [
            goto("cali1+", "cali-to-wl-dispatch-1"),
            goto("cali2c", "cali-tw-cali2c"),
            unknown.clone(),
        ]
    );
    assert_eq!(
        found("cali-to-wl-dispatch-1"),
        [
            goto("cali1a", "cali-tw-cali1a"),
            goto("cali1b", "cali-tw-cali1b"),
            unknown,
        ]
    );
    assert_eq!(
        found("cali-FORWARD")[2..4],
        [
            format!("{COMMENT} -i cali+ -j cali-from-wl-dispatch"),
            format!("{COMMENT} -o cali+ -j cali-to-wl-dispatch"),
        ]
    );
}

/// Names of chains that the kernel takes, for the longest name of a device.
#[test]
fn names_of_calico_are_no_longer_than_the_kernel_allows() {
    let policies = Policies {
        direction: PolicyDirection::Both,
        ..policies(10_000, Enforcer::CalicoIptables)
    };
    let pod = GuardedPod {
        device: "d".repeat(15),
        egress: receiver(&policies, Family::V6).ingress,
        ..receiver(&policies, Family::V6)
    };
    let text = rules_of(policies.enforcer, &[pod], PORT, Family::V6);
    let chains = text.iptables.lines().filter_map(|it| it.strip_prefix(':'));
    let names = Vec::from_iter(chains.map(|it| it.split(' ').next().unwrap_or_default()));
    // XT_EXTENSION_MAXNAMELEN, less its end.
    assert!(!names.is_empty() && names.iter().all(|name| name.len() <= 28));
    let sets = text
        .ipset
        .lines()
        .filter_map(|it| it.strip_prefix("create "));
    let names = Vec::from_iter(sets.map(|it| it.split(' ').next().unwrap_or_default()));
    // IPSET_MAXNAMELEN, less its end.
    let is_short = |name: &&str| name.starts_with("cali60s:") && name.len() <= 31;
    assert!(!names.is_empty() && names.iter().all(is_short));
}

#[test]
fn devices_of_two_pods_are_not_mixed_up() {
    let pod = receiver(&policies(1, Enforcer::CalicoIptables), Family::V4);
    let shared = [pod.clone(), pod.clone()];
    assert!(are_mixed_up(Enforcer::CalicoNftables, &shared));
    assert!(!are_mixed_up(Enforcer::Nft, &shared));
    assert!(!are_mixed_up(Enforcer::CalicoNftables, &shared[..1]));
}

#[test]
fn what_cannot_be_enforced_is_said() {
    let lacks = |change: fn(&mut Policies), family| {
        let mut policies = policies(10, Enforcer::Romana);
        change(&mut policies);
        super::lacks(&policies, family).unwrap_or_default()
    };
    assert_eq!(lacks(|_| {}, Family::V4), "");
    assert!(lacks(|_| {}, Family::V6).contains("IPv4 only"));
    assert!(lacks(|it| it.direction = PolicyDirection::Both, Family::V4).contains("ingress"));
    assert!(lacks(|it| it.members = 5_000, Family::V4).contains("50000 peers"));
    let of_cilium = |count| super::lacks(&policies(count, Enforcer::Cilium), Family::V4);
    assert_eq!(of_cilium(16_383).filter(|it| it.contains("map")), None);
    assert!(of_cilium(16_384).unwrap().contains("holds 16383"));
}

/// In place of some of their rules others would be asked, or none of what comes behind them.
#[test]
fn more_rules_than_a_program_or_a_map_holds_are_refused() {
    let lacks = |count, members, peers, enforcer| {
        let policies = Policies {
            members,
            peers,
            ..policies(count, enforcer)
        };
        super::lacks(&policies, Family::V4).unwrap_or_default()
    };
    for (enforcer, most) in [(Enforcer::CalicoEbpf, 32_000), (Enforcer::Cilium, 16_383)] {
        assert_eq!(lacks(10_000, 4, PolicyPeers::Pods, enforcer), "");
        assert_eq!(lacks(1, most, PolicyPeers::Addresses, enforcer), "");
        let refused = lacks(10_000, 4, PolicyPeers::Addresses, enforcer);
        let said = format!("holds {most} ");
        assert!(
            refused.contains(&said) && refused.contains("need 40000"),
            "{refused}"
        );
        assert!(lacks(1, most + 1, PolicyPeers::Addresses, enforcer).contains(&said));
    }
}

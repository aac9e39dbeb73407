//! The shapes and counts of what enforcers write.

use plumbline_experiment::PolicyPosition;

use super::rule_text::COMMENT;
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
    let nft = |word: &str| {
        text.nft
            .lines()
            .filter(|it| it.trim().starts_with(word))
            .count()
    };
    let keys = text.nft.matches(" : return").count();
    let is_rule = |line: &&str| line.starts_with("\t\t") && !line.contains(['{', '}', ';']);
    let jumps = text
        .nft
        .lines()
        .filter(|it| it.contains(" : jump "))
        .count();
    let types = nft("typeof ");
    Counts {
        chains: begin(&text.iptables, ":") + nft("chain "),
        rules: begin(&text.iptables, "-A ") + text.nft.lines().filter(is_rule).count() - types
            + jumps,
        sets: begin(&text.ipset, "create ") + nft("map "),
        members: begin(&text.ipset, "add ") + keys,
    }
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
            Enforcer::Nft => Counts {
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
        let with_far = peers.iter().enumerate().filter(|(_, it)| it.contains(&far));
        assert_eq!(with_far.map(|(at, _)| at).collect::<Vec<_>>(), [at]);
        assert!(peers.iter().all(|it| it.len() == 3));
        let mut all: Vec<_> = peers.into_iter().flatten().collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 30, "no address is there twice");
    }
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
            ingress: Vec::new(),
            ..other.clone()
        };
        let with = rules_of(enforcer, &[ours.clone(), other], PORT, Family::V4);
        let address = ours.address.to_string();
        let allows = match enforcer {
            // What is not among the guarded is accepted by the policy of the hook.
            Enforcer::Nft => !with.nft.contains(&address),
            Enforcer::Iptables => !with.iptables.contains(&address),
            Enforcer::Romana => with.iptables.contains("_X -j ACCEPT"),
            Enforcer::Romana1 => with.iptables.contains("-IN_0  -j ACCEPT"),
            Enforcer::KubeRouter => with
                .iptables
                .contains(&format!("-d {address} {COMMENT} -j KUBE-NWPLCY-DEFAULT")),
            Enforcer::WeaveNpc => with
                .ipset
                .contains(&format!("add weave-ingress-default-allow {address}\n")),
        };
        assert!(allows, "{enforcer:?}: {with:?}");
    }
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
}

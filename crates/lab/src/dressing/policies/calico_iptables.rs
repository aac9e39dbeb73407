//! `calico-iptables`: Calico's chains in the table `filter`, with a set of `ipset` for each
//! selector. The pod's chain is found by the names of devices, one rule each; where several
//! share the letter that follows what all have in common, by a chain for that letter
//! (projectcalico/calico@1f065ee, `felix/rules/dispatch.go`). Felix writes the hash of each
//! rule beside it as a comment, which is a match, and beside some a remark, which is one
//! more.

use std::collections::BTreeMap;

use plumbline_experiment::Family;

use super::calico::{Action, CalicoChains, Dispatch, FORWARD, FarEnd, Match, PodTraffic, Rule};
use super::guarded_pod::GuardedPod;
use super::rule_text::{AddressSets, COMMENT, FilterTable, RuleText};

/// What Felix allows a set to hold.
const MOST_MEMBERS: u32 = 1 << 20;

pub(super) fn rules(pods: &[GuardedPod], port: u16, family: Family) -> RuleText {
    let chains = CalicoChains::of(pods, port, family);
    let (mut sets, mut filter) = (AddressSets::default(), FilterTable::default());
    let family = match family {
        Family::V4 => "inet",
        Family::V6 => "inet6",
    };
    let kind = format!("hash:net family {family} maxelem {MOST_MEMBERS}");
    for (name, members) in &chains.sets {
        sets.set(name, &kind, members, "");
    }
    filter.rule("FORWARD", format!("{COMMENT} -j {FORWARD}"));
    for rule in &chains.behind {
        filter.rule("FORWARD", written(rule));
    }
    for chain in &chains.chains {
        filter.chain(&chain.name);
        for rule in &chain.rules {
            filter.rule(&chain.name, written(rule));
        }
    }
    for dispatch in &chains.dispatches {
        find_device(&mut filter, dispatch);
    }
    filter.with(sets)
}

/// A chain with a rule for each device, or for each letter that several have next.
fn find_device(filter: &mut FilterTable, of: &Dispatch) {
    let option = option(of.way);
    let mut by_letter: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let common = common_prefix(&of.devices);
    for device in &of.devices {
        // One that all others begin with has no next letter.
        let end = (common + 1).min(device.len());
        let beginning = device.get(..end).unwrap_or(device);
        by_letter.entry(beginning).or_default().push(device);
    }
    let unknown = format!("{COMMENT} {COMMENT} -j DROP");
    let find = |filter: &mut FilterTable, chain: &str, device: &str| {
        filter.rule(
            chain,
            format!("{option} {device} {COMMENT} -g {}{device}", of.prefix),
        );
    };
    filter.chain(of.name);
    for (beginning, devices) in by_letter {
        let [_, _, ..] = devices[..] else {
            find(filter, of.name, devices[0]);
            continue;
        };
        let chain = format!("{}-{}", of.name, &beginning[common..]);
        filter.rule(
            of.name,
            format!("{option} {beginning}+ {COMMENT} -g {chain}"),
        );
        filter.chain(&chain);
        for device in devices {
            find(filter, &chain, device);
        }
        filter.rule(&chain, &unknown);
    }
    filter.rule(of.name, unknown);
}

/// How many letters all of these begin with.
fn common_prefix(names: &[String]) -> usize {
    let Some(first) = names.first() else {
        return 0;
    };
    let equal = |other: &String| {
        let pairs = first.bytes().zip(other.bytes());
        pairs.take_while(|(one, other)| one == other).count()
    };
    names.iter().map(equal).min().unwrap_or_default()
}

fn written(rule: &Rule) -> String {
    let remark = match rule.has_remark {
        true => format!(" {COMMENT}"),
        false => String::new(),
    };
    format!(
        "{COMMENT}{remark}{}{}",
        condition(&rule.matches),
        jump(&rule.action)
    )
}

fn condition(matches: &Match) -> String {
    match matches {
        Match::All => String::new(),
        Match::Known => " -m conntrack --ctstate RELATED,ESTABLISHED".to_owned(),
        Match::Invalid => " -m conntrack --ctstate INVALID".to_owned(),
        Match::Devices(way, prefix) => format!(" {} {prefix}+", option(*way)),
        Match::Clear(bits) => format!(" -m mark --mark 0/{bits:#x}"),
        Match::NotClear(bits) => format!(" -m mark ! --mark 0/{bits:#x}"),
        Match::Set(bit) => format!(" -m mark --mark {bit:#x}/{bit:#x}"),
        Match::Vxlan => " -p udp -m multiport --destination-ports 4789".to_owned(),
        Match::IpInIp => " -p 4".to_owned(),
        Match::Peer(way, peer, port) => {
            let peer = match (peer, way) {
                (FarEnd::Set(set), PodTraffic::From) => format!("-m set --match-set {set} src"),
                (FarEnd::Set(set), PodTraffic::To) => format!("-m set --match-set {set} dst"),
                (FarEnd::Address(address), PodTraffic::From) => format!("--source {address}"),
                (FarEnd::Address(address), PodTraffic::To) => format!("--destination {address}"),
            };
            format!(" -p tcp {peer} -m multiport --destination-ports {port}")
        }
    }
}

fn jump(action: &Action) -> String {
    match action {
        Action::Accept => " -j ACCEPT".to_owned(),
        Action::Drop => " -j DROP".to_owned(),
        Action::Return => " -j RETURN".to_owned(),
        Action::Jump(chain) => format!(" -j {chain}"),
        Action::Mark(bits) => format!(" -j MARK --set-mark {bits:#x}/{bits:#x}"),
        Action::Unmark(bits) => format!(" -j MARK --set-mark 0/{bits:#x}"),
        Action::Nothing => String::new(),
    }
}

fn option(way: PodTraffic) -> &'static str {
    match way {
        PodTraffic::From => "-i",
        PodTraffic::To => "-o",
    }
}

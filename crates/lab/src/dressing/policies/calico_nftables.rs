//! `calico-nftables`: Calico's chains in a table of its own, `calico`, with a named set for
//! each selector, and one look-up of the device in a map in place of a rule for each
//! (projectcalico/calico, `felix/nftables`: `match_builder.go`@039dc56,
//! `actions.go`@0409cac, `renderer.go`@08bb13a, `ipsets.go`@036999a, `table.go`@0049295).
//! Every rule counts its packets, as there.

use std::net::IpAddr;

use plumbline_experiment::Family;
use plumbline_sys::namespace::in_user_namespace;

use super::calico::{Action, CalicoChains, FORWARD, FarEnd, Match, PodTraffic, Rule};
use super::guarded_pod::GuardedPod;
use super::rule_text::RuleText;
use crate::dressing::rule_writer::family_of_table;

/// Bytes of text in one transaction of an ordinary user, who may send no more at once than
/// `net.core.wmem_default`: what `nft` sends is about seven times as long as its text.
const PIECE: usize = 20_000;
/// Members that are added at once.
const MEMBERS: usize = 100;
/// What Felix calls the table that a chain would be in with iptables.
const LAYER: &str = "filter";

/// Commands of `nft`, and what they make.
struct Commands {
    ip: &'static str,
    lines: Vec<String>,
    text: RuleText,
}

pub(super) fn rules(pods: &[GuardedPod], port: u16, family: Family) -> RuleText {
    let chains = CalicoChains::of(pods, port, family);
    let ip = family_of_table(family);
    let mut commands = Commands {
        ip,
        lines: vec![format!("add table {ip} calico")],
        text: RuleText {
            nft_table: format!("{ip} calico"),
            ..RuleText::default()
        },
    };
    let hook = " { type filter hook forward priority 0 ; policy accept ; }";
    commands.chain("FORWARD", hook);
    for chain in &chains.chains {
        commands.chain(&chain.name, "");
    }
    let kind = match family {
        Family::V4 => "ipv4_addr",
        Family::V6 => "ipv6_addr",
    };
    for (name, members) in &chains.sets {
        commands.set(&legal(name), kind, members);
    }
    for dispatch in &chains.dispatches {
        let map = match dispatch.way {
            PodTraffic::From => "cali-fw-dispatch",
            PodTraffic::To => "cali-tw-dispatch",
        };
        commands.chain(dispatch.name, "");
        commands.add(format!(
            "map {ip} calico {LAYER}-{map} {{ type ifname : verdict ; }}"
        ));
        for device in &dispatch.devices {
            commands.element(
                &format!("{LAYER}-{map}"),
                &format!("{device:?} : goto {LAYER}-{}{device}", dispatch.prefix),
                1,
            );
        }
        let look = format!("{} vmap @{LAYER}-{map}", option(dispatch.way));
        commands.rule(dispatch.name, &look);
        commands.rule(dispatch.name, "counter drop");
    }
    for chain in &chains.chains {
        for rule in &chain.rules {
            commands.rule(&chain.name, &commands.written(rule));
        }
    }
    // Last, when all that it leads to is there.
    commands.rule("FORWARD", &format!("counter jump {LAYER}-{FORWARD}"));
    for rule in &chains.behind {
        commands.rule("FORWARD", &commands.written(rule));
    }
    commands.finish()
}

impl Commands {
    fn add(&mut self, what: String) {
        self.lines.push(format!("add {what}"));
    }

    fn chain(&mut self, name: &str, hook: &str) {
        self.add(format!("chain {} calico {LAYER}-{name}{hook}", self.ip));
        self.text.chains += 1;
    }

    fn rule(&mut self, chain: &str, rule: &str) {
        self.add(format!("rule {} calico {LAYER}-{chain} {rule}", self.ip));
        self.text.rules += 1;
    }

    fn set(&mut self, name: &str, kind: &str, members: &[IpAddr]) {
        let ip = self.ip;
        self.add(format!(
            "set {ip} calico {name} {{ type {kind} ; flags interval ; }}"
        ));
        for some in members.chunks(MEMBERS) {
            let written: Vec<String> = some.iter().map(IpAddr::to_string).collect();
            self.element(name, &written.join(", "), some.len());
        }
    }

    fn element(&mut self, of: &str, elements: &str, count: usize) {
        self.add(format!("element {} calico {of} {{ {elements} }}", self.ip));
        self.text.elements += count as u64;
    }

    fn written(&self, rule: &Rule) -> String {
        let action = match &rule.action {
            Action::Accept => "counter accept".to_owned(),
            Action::Drop => "counter drop".to_owned(),
            Action::Return => "counter return".to_owned(),
            Action::Jump(chain) => format!("counter jump {LAYER}-{chain}"),
            Action::Mark(bits) => format!("counter meta mark set meta mark | {bits:#x}"),
            Action::Unmark(bits) => format!("counter meta mark set meta mark & {:#x}", !bits),
            Action::Nothing => "continue".to_owned(),
        };
        let condition = match &rule.matches {
            Match::All => return action,
            Match::Known => "ct state related,established".to_owned(),
            Match::Invalid => "ct state invalid".to_owned(),
            Match::Devices(way, prefix) => format!("{} \"{prefix}*\"", option(*way)),
            Match::Clear(bits) => format!("meta mark & {bits:#x} == 0"),
            Match::NotClear(bits) => format!("meta mark & {bits:#x} != 0"),
            Match::Set(bit) => format!("meta mark & {bit:#x} == {bit:#x}"),
            Match::Vxlan => "meta l4proto 17 udp dport { 4789 }".to_owned(),
            Match::IpInIp => "meta l4proto 4".to_owned(),
            Match::Peer(way, peer, port) => {
                let side = match way {
                    PodTraffic::From => "saddr",
                    PodTraffic::To => "daddr",
                };
                let peer = match peer {
                    FarEnd::Set(set) => format!("@{}", legal(set)),
                    FarEnd::Address(address) => address.to_string(),
                };
                let ip = self.ip;
                format!("meta l4proto tcp {ip} {side} {peer} tcp dport {{ {port} }}")
            }
        };
        format!("{condition} {action}")
    }

    /// In as few texts as may be written here. Root writes all in one transaction.
    fn finish(self) -> RuleText {
        let most = match in_user_namespace() {
            true => PIECE,
            false => usize::MAX,
        };
        let mut texts = vec![String::new()];
        for line in self.lines {
            let last = texts.last_mut().filter(|it| it.len() + line.len() < most);
            match last {
                Some(text) => *text += &format!("{line}\n"),
                None => texts.push(format!("{line}\n")),
            }
        }
        RuleText {
            nft: texts,
            ..self.text
        }
    }
}

/// Names of sets have no colons here.
fn legal(name: &str) -> String {
    name.replace(':', "-")
}

fn option(way: PodTraffic) -> &'static str {
    match way {
        PodTraffic::From => "iifname",
        PodTraffic::To => "oifname",
    }
}

//! The chains of Calico (projectcalico/calico, `felix/rules`: `static.go`@00b9aad,
//! `dispatch.go`@1f065ee, `endpoints.go`@018190a, `policy.go`@0162f27), which Felix
//! writes by iptables or by nftables: whose text they become is not known here.
//!
//! What is forwarded passes `cali-FORWARD`, from there what comes from pods
//! `cali-from-wl-dispatch` and what goes to pods `cali-to-wl-dispatch`, which find the pod's
//! chain by its device. There known connections are accepted, invalid packets dropped, and
//! the policies of the tier asked: a group of policies that select the same pods has a chain
//! with a jump for each, and after every fifth a rule that returns once one has accepted.
//! A policy has a rule here for the peers that it names by labels, of one set, and one for each
//! address; behind each but the last another returns what was accepted. What no policy accepts
//! is dropped. A pod without policies has
//! what its profiles allow: that of its namespace everything, that of its account nothing.
//!
//! Policies of Kubernetes have a set for each selector, and all select the same pods here,
//! so there is one group. Not modelled: the chains for the node itself and its interfaces,
//! which no packet between pods meets or which are empty, those in the tables `raw`,
//! `mangle` and `nat`, and the hashes in names, which are numbers here.

use std::collections::BTreeSet;
use std::net::IpAddr;

use plumbline_experiment::Family;

use super::guarded_pod::{GuardedPod, Peers};

/// A policy has accepted the packet.
const ACCEPTED: u32 = 0x1_0000;
/// A policy has passed the packet to what comes behind the tier.
const PASSED: u32 = 0x2_0000;
/// All that Felix marks packets with, less [`ACCEPTED`].
const OTHERS: u32 = 0xe_0000;
/// Jumps in a group before one more look whether some policy has decided.
const STRIDE: usize = 5;
/// The end of the names of chains for one direction.
const NAMESPACE: &str = "kns.plumbline";
const ACCOUNT: &str = "ksa.default";

/// All that Felix writes for the pods of a node.
#[derive(Debug, Default)]
pub(super) struct CalicoChains {
    /// Those of Felix.
    pub(super) chains: Vec<Chain>,
    /// What follows the jump to [`FORWARD`] in the chain of the kernel.
    pub(super) behind: Vec<Rule>,
    /// Where packets of a device are sent.
    pub(super) dispatches: Vec<Dispatch>,
    /// The members of sets, by name.
    pub(super) sets: Vec<(String, Vec<IpAddr>)>,
    /// How many policies have chains.
    policies: usize,
}

/// Comes first of all chains.
pub(super) const FORWARD: &str = "cali-FORWARD";

/// Some rules, in their order.
#[derive(Debug)]
pub(super) struct Chain {
    pub(super) name: String,
    pub(super) rules: Vec<Rule>,
}

/// A chain that finds the pod's chain by its device, and drops what has none.
#[derive(Debug)]
pub(super) struct Dispatch {
    pub(super) name: &'static str,
    /// What the names of the pods' chains begin with.
    pub(super) prefix: &'static str,
    pub(super) way: PodTraffic,
    /// In alphabetical order.
    pub(super) devices: Vec<String>,
}

/// Which way packets pass the device of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PodTraffic {
    /// They come from it.
    From,
    /// They go to it.
    To,
}

/// What a rule does with packets that it is about.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) matches: Match,
    pub(super) action: Action,
    /// Whether Felix writes a remark beside the rule's hash: one more comment.
    pub(super) has_remark: bool,
}

/// The packets that a rule is about.
#[derive(Debug)]
pub(super) enum Match {
    All,
    /// Of a connection that stands.
    Known,
    Invalid,
    /// By a device whose name begins with this.
    Devices(PodTraffic, String),
    /// None of the bits is set.
    Clear(u32),
    /// One of the bits is set.
    NotClear(u32),
    /// The bit is set.
    Set(u32),
    Vxlan,
    IpInIp,
    /// From or to this peer, and to this port of TCP.
    Peer(PodTraffic, FarEnd, u16),
}

/// The other end of a packet.
#[derive(Debug)]
pub(super) enum FarEnd {
    /// A member of the set.
    Set(String),
    Address(IpAddr),
}

/// What becomes of a packet.
#[derive(Debug)]
pub(super) enum Action {
    Accept,
    Drop,
    Return,
    Jump(String),
    Mark(u32),
    Unmark(u32),
    /// It goes on to the next rule.
    Nothing,
}

fn rule(matches: Match, action: Action) -> Rule {
    Rule {
        matches,
        action,
        has_remark: false,
    }
}

fn remarked(matches: Match, action: Action) -> Rule {
    Rule {
        has_remark: true,
        ..rule(matches, action)
    }
}

/// The names of what belongs to one direction, as Felix has them.
struct TrafficNames {
    way: PodTraffic,
    endpoint: &'static str,
    policy: &'static str,
    group: &'static str,
    profile: &'static str,
    dispatch: &'static str,
    policies: fn(&GuardedPod) -> &[Peers],
}

const TRAFFIC_NAMES: [TrafficNames; 2] = [
    TrafficNames {
        way: PodTraffic::From,
        endpoint: "cali-fw-",
        policy: "cali-po-",
        group: "cali-go-",
        profile: "cali-pro-",
        dispatch: "cali-from-wl-dispatch",
        policies: |pod| &pod.egress,
    },
    TrafficNames {
        way: PodTraffic::To,
        endpoint: "cali-tw-",
        policy: "cali-pi-",
        group: "cali-gi-",
        profile: "cali-pri-",
        dispatch: "cali-to-wl-dispatch",
        policies: |pod| &pod.ingress,
    },
];

impl CalicoChains {
    /// For these pods, each with a device of its own.
    pub(super) fn of(pods: &[GuardedPod], port: u16, family: Family) -> Self {
        let mut chains = Self::default();
        chains.forward(pods);
        for direction in &TRAFFIC_NAMES {
            let devices: BTreeSet<String> = pods.iter().map(|pod| pod.device.clone()).collect();
            chains.dispatches.push(Dispatch {
                name: direction.dispatch,
                prefix: direction.endpoint,
                way: direction.way,
                devices: devices.into_iter().collect(),
            });
            let profile = |name| format!("{}{name}", direction.profile);
            let all = remarked(Match::All, Action::Mark(ACCEPTED));
            chains.chain(profile(NAMESPACE), vec![all]);
            let nothing = remarked(Match::All, Action::Nothing);
            chains.chain(profile(ACCOUNT), vec![nothing]);
            for pod in pods {
                chains.endpoint(direction, pod, port, family);
            }
        }
        chains
    }

    fn chain(&mut self, name: impl Into<String>, rules: Vec<Rule>) {
        let name = name.into();
        self.chains.push(Chain { name, rules });
    }

    fn forward(&mut self, pods: &[GuardedPod]) {
        let jump = |matches, chain: &str| rule(matches, Action::Jump(chain.to_owned()));
        let mut rules = vec![
            rule(Match::All, Action::Unmark(OTHERS)),
            jump(Match::Clear(ACCEPTED), "cali-from-hep-forward"),
        ];
        // The letters that names of pods' devices begin with: `cali` there.
        let letters = |pod: &GuardedPod| pod.device.find(|it: char| it.is_ascii_digit());
        let prefix = |pod: &GuardedPod| match letters(pod) {
            Some(end) => pod.device[..end].to_owned(),
            None => pod.device.clone(),
        };
        let prefixes: BTreeSet<String> = pods.iter().map(prefix).collect();
        for prefix in prefixes {
            for direction in &TRAFFIC_NAMES {
                let devices = Match::Devices(direction.way, prefix.clone());
                rules.push(jump(devices, direction.dispatch));
            }
        }
        rules.push(jump(Match::All, "cali-to-hep-forward"));
        rules.push(jump(Match::All, "cali-cidr-block"));
        self.chain(FORWARD, rules);
        // Empty where a node's own interfaces have no policies, and services no loops.
        for name in [
            "cali-from-hep-forward",
            "cali-to-hep-forward",
            "cali-cidr-block",
        ] {
            self.chain(name, Vec::new());
        }
        self.behind = vec![
            remarked(Match::Set(ACCEPTED), Action::Accept),
            rule(Match::All, Action::Mark(ACCEPTED)),
        ];
    }

    /// What a packet from or to a pod passes.
    fn endpoint(&mut self, direction: &TrafficNames, pod: &GuardedPod, port: u16, family: Family) {
        let mut rules = vec![
            rule(Match::Known, Action::Accept),
            rule(Match::Invalid, Action::Drop),
            rule(Match::All, Action::Unmark(ACCEPTED | PASSED)),
        ];
        if direction.way == PodTraffic::From {
            rules.push(remarked(Match::Vxlan, Action::Drop));
            rules.push(remarked(Match::IpInIp, Action::Drop));
        }
        if let Some(first) = self.policies(direction, pod, port, family) {
            rules.push(remarked(Match::All, Action::Unmark(PASSED)));
            rules.push(rule(Match::Clear(PASSED), Action::Jump(first)));
            rules.push(remarked(Match::Set(ACCEPTED), Action::Return));
            rules.push(remarked(Match::Clear(PASSED), Action::Drop));
        }
        for name in [NAMESPACE, ACCOUNT] {
            let profile = format!("{}{name}", direction.profile);
            rules.push(rule(Match::All, Action::Jump(profile)));
            rules.push(remarked(Match::Set(ACCEPTED), Action::Return));
        }
        rules.push(remarked(Match::All, Action::Drop));
        self.chain(format!("{}{}", direction.endpoint, pod.device), rules);
    }

    /// The policies of a pod; gives the chain that asks them all, if there are some.
    fn policies(
        &mut self,
        direction: &TrafficNames,
        pod: &GuardedPod,
        port: u16,
        family: Family,
    ) -> Option<String> {
        let version = u8::from(family);
        let mut names = Vec::new();
        for peers in (direction.policies)(pod) {
            let name = format!("{}{}", direction.policy, self.policies);
            self.policies += 1;
            // The peer is at the other end of where the pod is.
            let far = match direction.way {
                PodTraffic::From => PodTraffic::To,
                PodTraffic::To => PodTraffic::From,
            };
            let mut named: Vec<FarEnd> = Vec::new();
            if !peers.by_labels().is_empty() {
                let set = format!("cali{version}0s:{}", self.sets.len());
                self.sets.push((set.clone(), peers.by_labels().to_vec()));
                named.push(FarEnd::Set(set));
            }
            named.extend(peers.by_address().iter().copied().map(FarEnd::Address));
            let allow = |peer| {
                let fits = Match::Peer(far, peer, port);
                let decided = Match::Set(ACCEPTED);
                [
                    remarked(fits, Action::Mark(ACCEPTED)),
                    remarked(decided, Action::Return),
                ]
            };
            let mut rules: Vec<Rule> = named.into_iter().flat_map(allow).collect();
            rules.pop();
            self.chain(name.clone(), rules);
            names.push(name);
        }
        if names.len() < 2 {
            return names.pop();
        }
        let mut rules = Vec::new();
        for (at, name) in names.into_iter().enumerate() {
            let is_first = at % STRIDE == 0;
            if is_first && at > 0 {
                let decided = Match::NotClear(ACCEPTED | PASSED);
                rules.push(remarked(decided, Action::Return));
            }
            let matches = match is_first {
                true => Match::All,
                false => Match::Clear(ACCEPTED | PASSED),
            };
            rules.push(rule(matches, Action::Jump(name)));
        }
        let group = format!("{}{}", direction.group, pod.device);
        self.chain(group.clone(), rules);
        Some(group)
    }
}

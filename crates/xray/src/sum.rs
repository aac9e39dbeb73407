//! What adds up: rounds of all networks become the account of each.

use std::ops::Range;

use crate::account::{
    HopSurplus, HopTime, MeanTime, NetworkHops, STACK, Surplus, TRACEPOINTS, Unfollowed, Xray, kind,
};
use crate::hop::{NamedHop, Trip};
use crate::load::TrialLatency;
use crate::merge::{HopKey, in_order, value_of};

/// One network in one round.
#[derive(Clone, Debug)]
pub(crate) struct RoundSeen {
    /// One of so many requests was followed.
    pub(crate) one_in: u64,
    /// Without a tracer.
    pub(crate) alone: TrialLatency,
    /// With one that follows nobody; by taps, which most requests pass, the same as `watched`.
    pub(crate) rehearsed: TrialLatency,
    /// With one that follows requests.
    pub(crate) watched: TrialLatency,
    /// What a sight adds to those alone that are followed, which is in none of the hops.
    pub(crate) kept_ns: f64,
    /// Hops with their means.
    pub(crate) hops: Vec<NamedHop>,
}

/// A figure of a round, such as the latency that its hops are of.
type RoundFigure = fn(&RoundSeen) -> f64;

impl RoundSeen {
    /// All hops together.
    fn hops_ns(&self) -> f64 {
        self.hops.iter().map(|hop| hop.ns).sum()
    }

    fn cpu(&self) -> f64 {
        self.hops.iter().map(|hop| hop.cpu_ns).sum()
    }
}

/// All rounds of one network.
#[derive(Clone, Debug, Default)]
pub(crate) struct NetworkSeen {
    pub(crate) name: String,
    pub(crate) rounds: Vec<RoundSeen>,
    pub(crate) journeys: u64,
    pub(crate) lost: u64,
    pub(crate) drops: Vec<(String, u64)>,
}

impl NetworkSeen {
    /// The same as if sights took no time, where each took so long in each round that is told of.
    fn unseen(&self, sights: &[f64]) -> Self {
        let mut unseen = self.clone();
        for (round, ns) in unseen.rounds.iter_mut().zip(sights) {
            round.hops = round.hops.iter().map(|hop| hop.unseen(*ns)).collect();
        }
        unseen
    }
}

/// Sums up. The first network is the baseline.
pub(crate) fn sum_up(
    seen: &[&NetworkSeen],
    unfollowed: Vec<Unfollowed>,
    one_in: u64,
    by: &'static str,
) -> Xray {
    let share = observer_share(seen, one_in);
    let tells_cpu = by == TRACEPOINTS;
    let rounds = seen.iter().map(|it| it.rounds.len()).min().unwrap_or(0);
    let sights: Vec<f64> = (0..rounds).map_while(|at| sight(seen, at)).collect();
    let sight = Some(MeanTime::of(&sights)).filter(is_known);
    let (sights, total): (&[f64], RoundFigure) = match sight {
        Some(_) => (&sights, |round| round.alone.mean_ns),
        None => (&[], |round| round.watched.mean_ns),
    };
    let of_round = |at: usize| {
        let all: f64 = seen.iter().map(|it| it.rounds[at].kept_ns).sum();
        all / seen.len() as f64
    };
    let kept: Vec<f64> = (0..rounds).map(of_round).collect();
    let seen: Vec<_> = seen.iter().map(|it| it.unseen(sights)).collect();
    let networks = seen.iter().enumerate().map(|(at, network)| {
        let baseline = &seen[0];
        let values = |of: RoundFigure| network.rounds.iter().map(of);
        let mean = |of| MeanTime::of(&values(of).collect::<Vec<_>>());
        let left = values(total).zip(values(RoundSeen::hops_ns));
        let left = left.map(|(total, hops)| total - hops);
        NetworkHops {
            name: network.name.clone(),
            total: mean(total),
            alone: mean(|round| round.alone.mean_ns),
            watched: mean(|round| round.watched.mean_ns),
            alone_p50: mean(|round| round.alone.p50_ns),
            hops: hop_times(&network.rounds, tells_cpu),
            cpu: tells_cpu.then(|| mean(RoundSeen::cpu)),
            unaccounted: MeanTime::of(&left.collect::<Vec<_>>()),
            against: (at > 0).then(|| surplus(network, baseline, total)),
            journeys: network.journeys,
            lost: network.lost,
            drops: network.drops.clone(),
        }
    });
    Xray {
        networks: networks.collect(),
        unfollowed,
        observer_share: share,
        sight,
        kept: (!tells_cpu).then(|| MeanTime::of(&kept)),
        one_in,
        rounds,
        by,
    }
}

/// How wide half of the interval may be of what a place adds, as a share of it. Where CPUs halt,
/// trials differ by more than what programs take, and hops would get more from it than they lose.
const KNOWN_WITHIN: f64 = 0.25;

fn is_known(time: &MeanTime) -> bool {
    let half = time.half_width();
    half.is_some_and(|half| half <= time.ns * KNOWN_WITHIN)
}

/// What each place that a packet is seen at adds to its latency in one round, over all networks:
/// what programs add that follow nobody, by the places at which they would see a packet that is
/// followed. `None` where there is none.
fn sight(seen: &[&NetworkSeen], at: usize) -> Option<f64> {
    let (mut added, mut places) = (0.0, 0.0);
    for round in seen.iter().map(|it| &it.rounds[at]) {
        added += round.rehearsed.p50_ns - round.alone.p50_ns;
        places += round.hops.iter().map(|hop| hop.sights).sum::<f64>();
    }
    (places > 0.0).then(|| added / places)
}

/// What observing adds to the median, over all networks and the rounds so far in which one of
/// so many was followed. The rounds are the replicates: networks of one round share its moment.
pub(crate) fn observer_share(seen: &[&NetworkSeen], one_in: u64) -> MeanTime {
    let rounds = seen.iter().map(|it| it.rounds.len()).min().unwrap_or(0);
    let rounds = (0..rounds).filter(|at| seen[0].rounds[*at].one_in == one_in);
    let ratio = |round: &RoundSeen| (round.watched.p50_ns / round.alone.p50_ns).ln();
    let of_round = |at: usize| {
        let sum: f64 = seen.iter().map(|network| ratio(&network.rounds[at])).sum();
        sum / seen.len() as f64
    };
    let logs = MeanTime::of(&rounds.map(of_round).collect::<Vec<_>>());
    MeanTime {
        ns: logs.ns.exp_m1(),
        interval: logs
            .interval
            .map(|(low, high)| (low.exp_m1(), high.exp_m1())),
    }
}

fn hop_times(rounds: &[RoundSeen], tells_cpu: bool) -> Vec<HopTime> {
    let order = in_order(rounds.iter().map(|round| &round.hops[..]));
    let time = |(key, at): (HopKey, String)| {
        let mean = |of: fn(&NamedHop) -> f64| {
            let values = rounds.iter().map(|round| value_of(&round.hops, &key, of));
            MeanTime::of(&values.collect::<Vec<_>>())
        };
        HopTime {
            time: mean(|hop| hop.ns),
            cpu: tells_cpu.then(|| mean(|hop| hop.cpu_ns)),
            name: key.name,
            at,
            trip: key.trip,
        }
    };
    order.into_iter().map(time).collect()
}

/// The hops of a trip that are of a kind, in their order.
fn alike<'a>(round: &'a RoundSeen, trip: Trip, of: &'a str) -> impl Iterator<Item = &'a NamedHop> {
    let hops = round.hops.iter();
    hops.filter(move |hop| hop.trip == trip && kind(&hop.name) == of)
}

/// How long hops of a kind take that have one of these places among those of their trip.
fn time_of(round: &RoundSeen, of: &str, places: &Range<usize>) -> f64 {
    let by_trip = [Trip::Request, Trip::Answer].into_iter();
    let all = by_trip.flat_map(|trip| alike(round, trip, of).enumerate());
    let meant = all.filter(|(at, _)| places.contains(at));
    meant.map(|(_, hop)| hop.ns).sum()
}

/// How many hops of a kind a trip has at most.
fn most_of(network: &NetworkSeen, of: &str) -> usize {
    let trips = |round| [Trip::Request, Trip::Answer].map(|trip| alike(round, trip, of).count());
    network.rounds.iter().flat_map(trips).max().unwrap_or(0)
}

fn surplus(network: &NetworkSeen, baseline: &NetworkSeen, total: RoundFigure) -> Surplus {
    let pairs = || network.rounds.iter().zip(&baseline.rounds);
    let differences = |of: RoundFigure| {
        let values = pairs().map(|(one, other)| of(one) - of(other));
        MeanTime::of(&values.collect::<Vec<_>>())
    };
    let mut kinds: Vec<&str> = Vec::new();
    for hop in pairs().flat_map(|(one, other)| one.hops.iter().chain(&other.hops)) {
        if !kinds.contains(&kind(&hop.name)) {
            kinds.push(kind(&hop.name));
        }
    }
    let difference = |name, of: &str, places: Range<usize>| {
        let sum = |round: &RoundSeen| time_of(round, of, &places);
        let values = pairs().map(|(one, other)| sum(one) - sum(other));
        let time = MeanTime::of(&values.collect::<Vec<_>>());
        let kind = of.to_owned();
        HopSurplus {
            name,
            time,
            kind,
            places,
        }
    };
    let mut by_name = Vec::new();
    for of in kinds {
        let [one, other] = [network, baseline].map(|it| most_of(it, of));
        let (both, most) = (one.min(other), one.max(other));
        if both == 0 || both == most || of == STACK {
            by_name.push(difference(of.to_owned(), of, 0..most));
            continue;
        }
        let which = if most == 2 { "second" } else { "further" };
        by_name.push(difference(of.to_owned(), of, 0..both));
        by_name.push(difference(format!("{which} {of}"), of, both..most));
    }
    by_name.sort_by(|one, other| other.time.ns.abs().total_cmp(&one.time.ns.abs()));
    Surplus {
        baseline: baseline.name.clone(),
        total: differences(total),
        alone_p50: differences(|round| round.alone.p50_ns),
        by_name,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::merge::tests::hop;

    fn latency(ns: f64) -> TrialLatency {
        TrialLatency {
            mean_ns: ns,
            p50_ns: ns,
        }
    }

    /// The same as if two places were seen in each hop, which take so long.
    fn seen_at_two_places(network: &NetworkSeen, sight_ns: f64) -> NetworkSeen {
        let mut seen = network.clone();
        for round in &mut seen.rounds {
            let mut added = 0.0;
            for hop in &mut round.hops {
                (hop.sights, hop.cpu_sights) = (2.0, 2.0);
                hop.ns += 2.0 * sight_ns;
                hop.cpu_ns += 2.0 * sight_ns;
                added += 2.0 * sight_ns;
            }
            round.rehearsed = latency(round.alone.p50_ns + added);
        }
        seen
    }

    /// Six rounds that differ a little, with these hops and half a microsecond beside them.
    pub(crate) fn network(name: &str, hops: &[(&str, f64)]) -> NetworkSeen {
        let round = |at: usize| {
            let factor = 1.0 + at as f64 / 1_000.0;
            let hops: Vec<_> = hops
                .iter()
                .map(|(name, ns)| hop(name, Trip::Request, ns * factor))
                .collect();
            let sum: f64 = hops.iter().map(|hop| hop.ns).sum();
            RoundSeen {
                one_in: 8,
                alone: latency((sum + 500.0) / 1.02),
                rehearsed: latency((sum + 500.0) / 1.02),
                watched: latency(sum + 500.0),
                kept_ns: 40.0,
                hops,
            }
        };
        NetworkSeen {
            name: name.to_owned(),
            rounds: (0..6).map(round).collect(),
            journeys: 1_000,
            ..NetworkSeen::default()
        }
    }

    pub(crate) fn two() -> Xray {
        let bare = network("host", &[("node stack", 9_000.0), ("underlay", 3_000.0)]);
        let tunnel = [
            ("node stack", 9_000.0),
            ("vxlan", 5_400.0),
            ("underlay", 3_000.0),
        ];
        let unfollowed = Unfollowed {
            name: "tun".to_owned(),
            why: "packets were lost sight of".to_owned(),
        };
        let tunnel = network("vxlan", &tunnel);
        sum_up(&[&bare, &tunnel], vec![unfollowed], 8, "tracepoints")
    }

    #[test]
    fn hops_and_what_is_unaccounted_are_the_latency() {
        for network in two().networks {
            let hops: f64 = network.hops.iter().map(|hop| hop.time.ns).sum();
            let sum = hops + network.unaccounted.ns;
            assert!((sum - network.total.ns).abs() < 1e-6, "{network:?}");
            assert!((network.unaccounted.ns - 500.0).abs() < 1e-6);
        }
    }

    #[test]
    fn cpu_is_told_where_waits_are_seen() {
        let mut seen = network("host", &[("node stack", 9_000.0), ("wake-up", 3_000.0)]);
        for round in &mut seen.rounds {
            round.hops[1].cpu_ns = 0.0;
        }
        let found = |by| sum_up(&[&seen], Vec::new(), 8, by).networks.remove(0);
        let told = found(TRACEPOINTS);
        assert!((told.cpu.unwrap().ns - 9_022.5).abs() < 1e-6, "{told:?}");
        assert_eq!(told.hops[1].cpu.unwrap().ns, 0.0);
        let taps = found("taps");
        assert_eq!((taps.cpu, taps.hops[0].cpu), (None, None));
        let kept = |by| sum_up(&[&seen], Vec::new(), 8, by).kept.map(|it| it.ns);
        assert_eq!([TRACEPOINTS, "taps"].map(kept), [None, Some(40.0)]);
    }

    #[test]
    fn what_a_network_adds_is_in_its_hop_and_in_no_other() {
        let all = two();
        let against = all.networks[1].against.as_ref().unwrap();
        let [first, others @ ..] = &against.by_name[..] else {
            panic!("{against:?}")
        };
        assert_eq!(first.name, "vxlan");
        assert!((first.time.ns - 5_413.5).abs() < 1e-6);
        assert!(first.time.is_different());
        assert!(others.iter().all(|it| !it.time.is_different()));
        assert!(all.networks[0].against.is_none());
    }

    /// Of what the baseline has once the second is told apart, and what it has not at all is one.
    #[test]
    fn what_comes_a_second_time_stands_apart() {
        let bare = network("host", &[("underlay", 3_000.0), ("receive", 6_000.0)]);
        let tunnel = [
            ("veth", 3_000.0),
            ("underlay", 3_000.0),
            ("receive", 6_000.0),
            ("decapsulation", 4_000.0),
            ("receive", 2_100.0),
            ("veth", 3_000.0),
        ];
        let tunnel = network("vxlan", &tunnel);
        let all = sum_up(&[&bare, &tunnel], Vec::new(), 8, TRACEPOINTS);
        let seen = &all.networks[1];
        let against = seen.against.as_ref().unwrap();
        let differ = against.by_name.iter().filter(|it| it.time.is_different());
        let names: Vec<&str> = differ.map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["veth", "decapsulation", "second receive"]);
        let name = |at| {
            let mut of_hop = against.by_name.iter().filter(|it| it.has(seen, at));
            of_hop.next().map(|it| it.name.as_str())
        };
        assert_eq!([2, 4].map(name), [Some("receive"), Some("second receive")]);
    }

    #[test]
    fn what_hops_add_is_held_against_medians_that_nobody_looked_at() {
        let all = two();
        let against = all.networks[1].against.as_ref().unwrap();
        let p50 = all.networks.iter().map(|it| it.alone_p50.ns);
        let [host, vxlan] = p50.collect::<Vec<_>>()[..] else {
            panic!("{all:?}")
        };
        assert!((against.alone_p50.ns - (vxlan - host)).abs() < 1e-6);
        assert!((against.alone_p50.ns - against.total.ns / 1.02).abs() < 1e-6);
    }

    /// Where hops are of the latency that nobody looked at, which is 1 / 1.02 of the other.
    #[test]
    fn what_sights_take_is_in_no_hop() {
        let bare = network("host", &[("node stack", 9_000.0), ("underlay", 3_000.0)]);
        let tunnel = network("vxlan", &[("node stack", 9_000.0), ("vxlan", 5_400.0)]);
        let seen = [&bare, &tunnel].map(|it| seen_at_two_places(it, 60.0));
        let found = sum_up(&[&seen[0], &seen[1]], Vec::new(), 8, TRACEPOINTS);
        assert!((found.sight.unwrap().ns - 60.0).abs() < 1e-6, "{found:?}");
        for (network, seen) in found.networks.iter().zip([&bare, &tunnel]) {
            let bare = sum_up(&[seen], Vec::new(), 8, TRACEPOINTS)
                .networks
                .remove(0);
            for (hop, bare) in network.hops.iter().zip(&bare.hops) {
                assert!((hop.time.ns - bare.time.ns).abs() < 1e-6, "{hop:?}");
                assert!((hop.cpu.unwrap().ns - bare.cpu.unwrap().ns).abs() < 1e-6);
            }
            assert_eq!(network.total, network.alone);
            assert_eq!(bare.total, bare.watched);
            let hops: f64 = network.hops.iter().map(|hop| hop.time.ns).sum();
            let left = network.alone.ns - hops;
            assert!((network.unaccounted.ns - left).abs() < 1e-6, "{network:?}");
        }
    }

    #[test]
    fn what_is_not_known_of_sights_is_left_in_the_hops() {
        let bare = network("host", &[("node stack", 9_000.0), ("underlay", 3_000.0)]);
        let mut seen = seen_at_two_places(&bare, 60.0);
        for round in &mut seen.rounds[..3] {
            round.rehearsed = round.alone;
        }
        let found = sum_up(&[&seen], Vec::new(), 8, TRACEPOINTS);
        assert_eq!(found.sight, None);
        let [stack, _] = &found.networks[0].hops[..] else {
            panic!("{found:?}")
        };
        assert!((stack.time.ns - 9_022.5 - 120.0).abs() < 1e-6, "{stack:?}");
        assert_eq!(found.networks[0].total, found.networks[0].watched);
    }

    #[test]
    fn what_observing_costs_is_told_of_medians() {
        assert!((two().observer_share.ns - 0.02).abs() < 1e-9);
    }

    #[test]
    fn what_observing_costs_is_of_the_rounds_in_which_as_many_were_followed() {
        let mut seen = network("host", &[("node stack", 9_000.0)]);
        for round in &mut seen.rounds[3..] {
            round.one_in = 16;
            round.alone = round.watched;
        }
        let costs = [8, 16].map(|one_in| observer_share(&[&seen], one_in).ns);
        assert!((costs[0] - 0.02).abs() < 1e-9 && costs[1].abs() < 1e-9);
    }
}

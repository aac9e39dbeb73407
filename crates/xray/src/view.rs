//! From what tracers saw to hops with names.

use plumbline_protocol::{Hook, TracedRoute, Traces};
use plumbline_record::LoadResult;

use crate::around::Surroundings;
use crate::hop::{CALLS, CALLS_AND_STACK, NamedHop, SENDER, Trip, UNDERLAY_BOTH_WAYS, hops};
use crate::load::{TrialLatency, mean_within};
use crate::merge::merged;
use crate::place::SeenAt;

/// What taps saw of a trial.
#[derive(Debug)]
pub(crate) struct Tapped {
    /// The requests that were kept at all devices.
    pub(crate) traces: Traces,
    /// What each tap adds to a request that it keeps, nanoseconds.
    pub(crate) kept_ns: f64,
    /// What of the mean latency of all requests is between the sender's devices, or by taps that
    /// keep some of them; `None` where none was seen.
    pub(crate) between_ns: Option<f64>,
}

/// What was seen of one trial, in words.
#[derive(Clone, Debug, Default)]
pub(crate) struct Glimpse {
    /// The hops of all journeys, with their means.
    hops: Vec<NamedHop>,
    /// From the first of their places to the last, the mean of all requests, nanoseconds.
    between_ends_ns: Option<f64>,
    /// What the hop is called that is before the first of them and after the last.
    around_ends: &'static str,
    /// What a sight adds to a request that is followed and to no other, which is in no hop.
    pub(crate) kept_ns: f64,
    /// Journeys from end to end.
    pub(crate) journeys: u64,
    /// Those above the limit.
    too_long: u64,
    /// Those whose packet was lost sight of.
    pub(crate) lost: u64,
    no_room: u64,
    /// What was dropped, and how many packets.
    pub(crate) drops: Vec<(String, u64)>,
    /// Of two kernels that follow a half each, one that saw nothing.
    blind: Option<&'static str>,
}

impl Glimpse {
    /// Of journeys that one kernel saw as a whole.
    pub(crate) fn whole(traces: &Traces, around: &Surroundings) -> Self {
        let list =
            |route: &TracedRoute| (route.journeys, hops(&seen(route, around), Trip::Request));
        Self {
            hops: merged(traces.routes.iter().map(list).collect()),
            ..Self::counted(traces, around)
        }
    }

    /// Of journeys that taps saw.
    pub(crate) fn tapped(tapped: &Tapped, around: &Surroundings) -> Self {
        let seen = Self::whole(&tapped.traces, around);
        let unseen = |hop: &NamedHop| hop.unseen(tapped.kept_ns);
        Self {
            hops: seen.hops.iter().map(unseen).collect(),
            between_ends_ns: tapped.between_ns,
            kept_ns: tapped.kept_ns,
            ..seen
        }
    }

    /// Of journeys that two kernels saw a half of each, by their own clocks: which journeys the
    /// one followed, the other did not have to. What lies between the two is what the sender's
    /// half has left: from the last sight of a request to the first one of its answer, without
    /// the receiver's half.
    pub(crate) fn halves([sender, receiver]: &[Traces; 2], around: &Surroundings) -> Self {
        let ends = sender
            .routes
            .iter()
            .filter_map(|route| SenderEnds::of(route, around));
        let ends: Vec<_> = ends.collect();
        let journeys = |routes: &mut dyn Iterator<Item = u64>| routes.sum::<u64>();
        let sent = journeys(&mut ends.iter().map(|it| it.journeys));
        let served = journeys(&mut receiver.routes.iter().map(|it| it.journeys));
        let mut glimpse = Self {
            journeys: if served > 0 { sent } else { 0 },
            blind: (served == 0 || sent == 0).then_some(match served {
                0 => "the receiver's",
                _ => "the sender's",
            }),
            ..Self::counted(sender, around)
        };
        let beside = Self::counted(receiver, around);
        glimpse.too_long += beside.too_long;
        glimpse.lost += beside.lost;
        glimpse.no_room += beside.no_room;
        glimpse.drops.extend(beside.drops);
        if glimpse.journeys > 0 {
            glimpse.hops = joined(&ends, receiver, around);
        }
        glimpse
    }

    fn counted(traces: &Traces, around: &Surroundings) -> Self {
        let answered = traces.answered as f64;
        Self {
            around_ends: around_ends(traces),
            between_ends_ns: (answered > 0.0).then(|| traces.answered_ns as f64 / answered),
            journeys: traces.routes.iter().map(|route| route.journeys).sum(),
            too_long: traces.too_long,
            lost: traces.lost,
            no_room: traces.no_room,
            drops: drops(traces, around),
            ..Self::default()
        }
    }

    /// The hops, and beside them those at the ends of the sender, whose latency is known (L-17).
    pub(crate) fn with_ends(
        self,
        load: &LoadResult,
        latency: TrialLatency,
        limit_ns: u64,
    ) -> Vec<NamedHop> {
        let Some(between) = self.between_ends_ns else {
            return self.hops;
        };
        let around = latency.mean_ns - between;
        let protocol = load.spans.as_deref();
        match protocol.and_then(|it| mean_within(&it.protocol, limit_ns)) {
            Some(protocol) => within_sender(self.hops, protocol, around),
            None => with_calls(self.hops, self.around_ends, around),
        }
    }

    /// Why there are no journeys, where most of those that began ended on their way.
    pub(crate) fn unseen(&self) -> Option<String> {
        let dropped: u64 = self.drops.iter().map(|(_, packets)| packets).sum();
        let ended = self.journeys + self.too_long;
        if ended > self.lost + self.no_room + dropped {
            return None;
        }
        if ended + self.lost + self.no_room + dropped == 0 && self.blind.is_none() {
            let why = "in a trial of 0.25 s none began that would be followed, which one in so many \
                       is: does a request take milliseconds?";
            return Some(why.to_owned());
        }
        let of = self
            .blind
            .map(|end| format!("{end} kernel saw none from end to end; "));
        Some(format!(
            "{}of those that began, {} were lost sight of, as where a program takes packets and \
             sends them on, {dropped} packets were dropped, and {} passed more places than there \
             is room for",
            of.unwrap_or_default(),
            self.lost,
            self.no_room
        ))
    }
}

/// The places of a route, each with the mean time to it.
fn seen(route: &TracedRoute, around: &Surroundings) -> Vec<(SeenAt, f64)> {
    let seen = route.steps.iter().map(|step| {
        let place = around.place(step.namespace, step.device, step.hook);
        (place, step.sum_ns as f64 / route.journeys as f64)
    });
    seen.collect()
}

/// What a sender's kernel saw of journeys along one route: their ends.
struct SenderEnds {
    journeys: u64,
    request: Vec<NamedHop>,
    /// From the last sight of the request to the first of the answer, nanoseconds.
    away_ns: f64,
    answer: Vec<NamedHop>,
    /// The namespace in which the request was seen last.
    left: String,
}

impl SenderEnds {
    /// `None` for a route on which nothing came back.
    fn of(route: &TracedRoute, around: &Surroundings) -> Option<Self> {
        let back = route.steps.iter().position(|step| step.comes)?;
        let seen = seen(route, around);
        let (request, answer) = seen.split_at(back);
        Some(Self {
            journeys: route.journeys,
            request: hops(request, Trip::Request),
            away_ns: answer[0].1,
            answer: hops(answer, Trip::Answer),
            left: request.last()?.0.namespace.to_string(),
        })
    }
}

/// The hops of both ends and of the receiver's half, with what remains between them.
fn joined(ends: &[SenderEnds], receiver: &Traces, around: &Surroundings) -> Vec<NamedHop> {
    let part = |of: fn(&SenderEnds) -> &Vec<NamedHop>| {
        merged(
            ends.iter()
                .map(|it| (it.journeys, of(it).clone()))
                .collect(),
        )
    };
    let sent: u64 = ends.iter().map(|it| it.journeys).sum();
    let away_ns: f64 = ends.iter().map(|it| it.away_ns * it.journeys as f64).sum();
    let served: u64 = receiver.routes.iter().map(|it| it.journeys).sum();
    let lasted_ns: u64 = receiver.routes.iter().map(|it| it.lasted_ns).sum();
    let half = |route: &TracedRoute| (route.journeys, hops(&seen(route, around), Trip::Request));
    let half = merged(receiver.routes.iter().map(half).collect());
    let left = ends.first().map_or("", |it| &it.left);
    // No CPU is told: cards and interrupts, which no tracepoint is between.
    let between = NamedHop {
        ns: away_ns / sent as f64 - lasted_ns as f64 / served as f64,
        // The first on each side, and what is left of the last one.
        sights: 2.0,
        ..NamedHop::new(UNDERLAY_BOTH_WAYS.to_owned(), left, Trip::Request)
    };
    let request = part(|it| &it.request).into_iter();
    let answer = part(|it| &it.answer);
    request.chain([between]).chain(half).chain(answer).collect()
}

/// What was dropped, in words, and how many packets.
fn drops(traces: &Traces, around: &Surroundings) -> Vec<(String, u64)> {
    let drops = traces.drops.iter().map(|drop| {
        let place = around.place(drop.namespace, drop.device, drop.hook);
        let device = place.device.as_ref().map(|it| format!(" {}", it.name));
        let device = device.unwrap_or_default();
        let text = format!("{} on {}{device}", drop.reason, place.namespace);
        (text, drop.packets)
    });
    drops.collect()
}

/// What is around places of which the first is the sender's socket, or a device of it.
fn around_ends(traces: &Traces) -> &'static str {
    let first = traces.routes.iter().filter_map(|route| route.steps.first());
    let begins = |hook| first.clone().any(|step| step.hook == hook);
    match (begins(Hook::Queued), begins(Hook::Transmitted)) {
        (true, _) => CALLS_AND_STACK,
        (false, true) => SENDER,
        (false, false) => CALLS,
    }
}

/// A hop in the namespace of the sender, where these begin.
fn at_sender(hops: &[NamedHop], name: &str, trip: Trip, ns: f64) -> NamedHop {
    let at = hops.first().map_or("", |hop| &hop.at);
    NamedHop {
        ns,
        ..NamedHop::new(name.to_owned(), at, trip)
    }
}

/// Hops with what is before their first place and after their last one.
fn with_calls(mut hops: Vec<NamedHop>, name: &str, ns: f64) -> Vec<NamedHop> {
    hops.push(NamedHop {
        cpu_ns: ns,
        // What is before the first sight, and after the last.
        sights: 1.0,
        cpu_sights: 1.0,
        ..at_sender(&hops, name, Trip::Answer, ns)
    });
    hops
}

/// Hops between the sender's devices with what is around them, of which its socket's stamps tell
/// how much is before the first.
fn within_sender(mut hops: Vec<NamedHop>, protocol: f64, around: f64) -> Vec<NamedHop> {
    let first = at_sender(&hops, "sender: protocol", Trip::Request, protocol);
    let last = NamedHop {
        sights: 1.0,
        ..at_sender(&hops, "sender: wake-up", Trip::Answer, around - protocol)
    };
    hops.insert(0, first);
    hops.push(last);
    hops
}

#[cfg(test)]
mod tests {
    use plumbline_protocol::TracedStep;
    use plumbline_record::Spans;

    use super::*;

    fn step(namespace: u32, hook: Hook, comes: bool, sum_ns: u64) -> TracedStep {
        TracedStep {
            namespace,
            device: 0,
            hook,
            comes,
            sum_ns,
        }
    }

    fn traces(lasted_ns: u64, steps: Vec<TracedStep>) -> Traces {
        let route = TracedRoute {
            journeys: 2,
            lasted_ns,
            steps,
        };
        Traces {
            routes: vec![route],
            ..Traces::default()
        }
    }

    /// Two journeys: 40 ns each are away, 24 of them at the receiver.
    fn two_halves() -> [Traces; 2] {
        let sender = vec![
            step(1, Hook::Sent, false, 0),
            step(1, Hook::Queued, false, 6),
            step(1, Hook::Transmitted, false, 2),
            step(1, Hook::Received, true, 80),
            step(1, Hook::Delivered, false, 4),
            step(1, Hook::Ready, false, 2),
            step(1, Hook::Read, false, 6),
        ];
        let receiver = vec![
            step(2, Hook::Received, true, 0),
            step(2, Hook::Delivered, false, 10),
            step(2, Hook::Ready, false, 4),
            step(2, Hook::Read, false, 8),
            step(2, Hook::Sent, false, 10),
            step(2, Hook::Queued, false, 6),
            step(2, Hook::Transmitted, false, 2),
        ];
        [traces(100, sender), traces(48, receiver)]
    }

    fn around() -> Surroundings {
        let mut around = Surroundings::default();
        around.add("node1", false, 1, Vec::new());
        around.add("node2", false, 2, Vec::new());
        around
    }

    #[test]
    fn two_halves_are_one_journey_and_what_remains_lies_between_them() {
        let seen = Glimpse::halves(&two_halves(), &around());
        let named = |hop: &NamedHop| (hop.name.clone(), hop.at.clone(), hop.trip, hop.ns);
        let hops: Vec<_> = seen.hops.iter().map(named).collect();
        let hop = |name: &str, at: &str, trip, ns| (name.to_owned(), at.to_owned(), trip, ns);
        let (there, back) = (Trip::Request, Trip::Answer);
        assert_eq!(
            hops,
            [
                hop("node stack", "node1", there, 3.0),
                hop("underlay", "node1", there, 1.0),
                hop(UNDERLAY_BOTH_WAYS, "node1", there, 16.0),
                hop("node stack", "node2", there, 7.0),
                hop("wake-up", "node2", there, 4.0),
                hop("responder", "node2", back, 5.0),
                hop("node stack", "node2", back, 3.0),
                hop("underlay", "node2", back, 1.0),
                hop("node stack", "node1", back, 3.0),
                hop("wake-up", "node1", back, 3.0),
            ]
        );
        assert_eq!((seen.journeys, seen.unseen()), (2, None));
    }

    #[test]
    fn a_trial_in_which_nothing_began_is_called_so() {
        let none = Traces::default();
        let why = Glimpse::whole(&none, &around()).unseen().unwrap();
        assert!(why.contains("none began"), "{why}");
        let lost = Traces { lost: 1, ..none };
        let why = Glimpse::whole(&lost, &around()).unseen().unwrap();
        assert!(why.contains("1 were lost sight of"), "{why}");
    }

    #[test]
    fn an_end_that_saw_nothing_is_named() {
        let mut halves = two_halves();
        halves[1].routes.clear();
        let why = Glimpse::halves(&halves, &around()).unseen().unwrap();
        assert!(why.starts_with("the receiver's kernel saw none"), "{why}");
        let mut halves = two_halves();
        halves[0].routes[0].steps.truncate(3);
        let seen = Glimpse::halves(&halves, &around());
        let why = seen.unseen().unwrap();
        assert!(why.starts_with("the sender's kernel saw none"), "{why}");
        assert!(seen.hops.is_empty());
    }

    /// Two requests of 60 ns, of which 50 passed between the first place and the last.
    #[test]
    fn what_is_around_the_first_place_and_the_last_is_in_system_calls() {
        let [mut sender, receiver] = two_halves();
        (sender.answered, sender.answered_ns) = (2, 100);
        let mut from_device = sender.clone();
        from_device.routes[0].steps.remove(0);
        let latency = TrialLatency {
            mean_ns: 60.0,
            p50_ns: 60.0,
        };
        let load = LoadResult::default();
        let receiver = || receiver.clone();
        let coarse = Glimpse::halves(&[from_device, receiver()], &around());
        let coarse = coarse.with_ends(&load, latency, 1_000);
        assert_eq!(coarse.last().unwrap().name, CALLS_AND_STACK);
        let seen = Glimpse::halves(&[sender, receiver()], &around());
        let mut hops = seen.with_ends(&load, latency, 1_000);
        let last = hops.pop().unwrap();
        assert_eq!((&*last.name, &*last.at), (CALLS, "node1"));
        assert_eq!((last.ns, last.cpu_ns, last.sights), (10.0, 10.0, 1.0));
        // From place to place there is one sight for each, and two where the nodes meet.
        let sights: Vec<f64> = hops.iter().map(|hop| hop.sights).collect();
        assert_eq!(sights, [1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 2.0, 1.0]);
    }

    /// Requests of 60 ns, of which 50 pass between the sender's devices.
    #[test]
    fn what_is_around_the_senders_devices_is_split_by_its_socket() {
        let tapped = Tapped {
            traces: traces(
                100,
                vec![
                    step(1, Hook::Transmitted, false, 0),
                    step(2, Hook::Arrived, false, 40),
                    // Of the same moment.
                    step(3, Hook::Arrived, false, 0),
                    step(2, Hook::Transmitted, false, 60),
                ],
            ),
            kept_ns: 2.0,
            between_ns: Some(50.0),
        };
        let mut load = LoadResult::default();
        let latency = TrialLatency {
            mean_ns: 60.0,
            p50_ns: 60.0,
        };
        let shown = |load: &LoadResult| {
            let seen = Glimpse::tapped(&tapped, &around());
            let hops = seen.with_ends(load, latency, 1_000).into_iter();
            hops.map(|it| (it.name, it.ns)).collect::<Vec<_>>()
        };
        let hop = |name: &str, ns| (name.to_owned(), ns);
        let middle = [hop("underlay", 18.0), hop("elsewhere", 26.0)];
        let whole = [&middle[..], &[hop("sender", 10.0)]].concat();
        assert_eq!(shown(&load), whole);
        let mut spans = Spans::default();
        spans.protocol.record_n(3, 10);
        load.spans = Some(Box::new(spans));
        let ends = [hop("sender: protocol", 3.0)];
        let split = [&ends[..], &middle, &[hop("sender: wake-up", 7.0)]].concat();
        assert_eq!(shown(&load), split);
    }
}

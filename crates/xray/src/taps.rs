//! Taps on the devices of a path, which an ordinary user may have in the lab's own namespaces.
//!
//! Each gives the moments at which a sample of the messages was at a device: the driver's on the
//! way out, the receive queue's on the way in. What lies between the taps of an end is in one
//! hop.
//!
//! A tap that keeps a message copies it, behind the stamp, so that the next hop is longer by as
//! much. What that takes is seen in the same trial: as many other requests are kept at the
//! sender's devices only, and what the way takes longer for those that are kept all along it is
//! what the further taps took.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use plumbline_lab::{Place, StandingNetwork};
use plumbline_protocol::{Hook, TracedRoute, TracedStep, Traces};
use plumbline_sys::netlink::DeviceInfo;
use plumbline_sys::sampled::MessageTap;

use crate::around::{inode, places};
use crate::error::XrayError;
use crate::ground::RequestSample;
use crate::load::TIMING;
use crate::view::Tapped;

/// How often messages are taken from the taps.
const PAUSE: Duration = Duration::from_millis(5);
/// The least share of messages that is read one by one.
const LEAST_ONE_IN: u32 = 16;
const MOST_ONE_IN: u32 = 1 << 16;
/// Ways that fewer than one in so many journeys took were cut off, at the beginning or by a
/// full tap.
const RARE: u64 = 20;

/// A tap, and where it is.
struct PlacedTap {
    tap: MessageTap,
    namespace: u32,
    device: u32,
    /// Where one stamp serves several devices, as a packet is handed up, those further up have
    /// a higher one.
    height: u8,
}

/// A message at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Sighting {
    at_ns: u64,
    height: u8,
    namespace: u32,
    device: u32,
    sent: bool,
}

/// By the numbers of messages.
type Sightings = BTreeMap<u64, Vec<Sighting>>;

/// The share of messages that taps read, one in so many, where this is asked for: the next power
/// of two, within bounds.
pub(crate) fn one_in(asked: u64) -> u32 {
    let asked = u32::try_from(asked).unwrap_or(MOST_ONE_IN);
    asked.clamp(LEAST_ONE_IN, MOST_ONE_IN).next_power_of_two()
}

/// Taps all devices of a path while `work` is done; gives what they saw.
///
/// # Errors
///
/// Devices that cannot be tapped.
pub(crate) fn watch<T>(
    standing: &StandingNetwork,
    sample: RequestSample,
    size: u32,
    work: impl FnOnce() -> T,
) -> Result<(T, Tapped), XrayError> {
    let one_in = one_in(sample.one_in);
    let sender = inode(standing.client_place());
    let mut taps = Vec::new();
    for (place, _) in places(standing) {
        let is_sender = inode(place) == sender;
        let kept = if is_sender { one_in / 2 } else { one_in };
        taps.extend(open(place, size, kept)?);
    }
    let is_over = AtomicBool::new(false);
    let (done, seen) = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = Sightings::new();
            while !is_over.load(Ordering::SeqCst) {
                thread::sleep(PAUSE);
                taps.iter().for_each(|tap| tap.take_all(&mut seen));
            }
            taps.iter().for_each(|tap| tap.take_all(&mut seen));
            seen
        });
        let done = work();
        is_over.store(true, Ordering::SeqCst);
        let seen = reader.join();
        (
            done,
            seen.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        )
    });
    Ok((done, tapped(seen, one_in, sample.longest_ns)))
}

fn open(place: &Place, size: u32, one_in: u32) -> Result<Vec<PlacedTap>, XrayError> {
    let links = place.netlink().links()?;
    let namespace = inode(place);
    let tap = |link: &DeviceInfo| -> io::Result<PlacedTap> {
        Ok(PlacedTap {
            tap: MessageTap::open(link.index, size, one_in)?,
            namespace,
            device: link.index,
            height: height(&link.kind),
        })
    };
    let up = links.iter().filter(|link| link.up);
    let opened = place
        .namespace
        .run(|| up.map(tap).collect::<io::Result<Vec<_>>>())?;
    opened.map_err(|source| XrayError::Taps {
        place: place.name.clone(),
        source,
    })
}

fn height(kind: &str) -> u8 {
    match kind {
        "bridge" | "openvswitch" => 2,
        "" | "veth" | "netkit" => 0,
        _ => 1,
    }
}

impl PlacedTap {
    /// Takes what has come. A device that is gone shows nothing more.
    fn take_all(&self, seen: &mut Sightings) {
        while let Ok(Some(message)) = self.tap.take() {
            seen.entry(message.number).or_default().push(Sighting {
                at_ns: message.at_ns,
                height: self.height,
                namespace: self.namespace,
                device: self.device,
                sent: message.sent,
            });
        }
    }
}

/// The journeys: all sightings of a number, request and answer, in their order. Those that began
/// in the warm-up, which begins with the lowest number, are left out.
fn tapped(mut seen: Sightings, one_in: u32, longest_ns: u64) -> Tapped {
    seen.values_mut().for_each(|it| it.sort_unstable());
    let first = seen.values().flatten().next();
    let counts_from = first.map_or(0, |it| it.at_ns + TIMING.warm_up_ns);
    seen.retain(|_, it| it.first().is_some_and(|it| it.at_ns >= counts_from));
    let is_whole = |(number, _): &(u64, _)| number % u64::from(one_in) == 0;
    let (whole, at_ends): (Sightings, Sightings) = seen.into_iter().partition(is_whole);
    let [traces, at_ends] = [whole, at_ends].map(|it| traces(it.into_values(), longest_ns));
    let Some(whole) = MeanJourney::of(&traces) else {
        return Tapped {
            traces,
            kept_ns: 0.0,
            between_ns: None,
        };
    };
    // On a slow path there may be none of the others.
    let ends = MeanJourney::of(&at_ends).unwrap_or(whole);
    let further = whole.sights - ends.sights;
    let kept_ns = match further > 0.0 {
        true => (whole.lasted_ns - ends.lasted_ns) / further,
        false => 0.0,
    };
    // The last tap's copy is behind all that is between them. What the copies add to the mean
    // of all requests is of the few that are kept.
    let of_kept = (whole.sights + ends.sights) * kept_ns / f64::from(one_in);
    Tapped {
        traces,
        kept_ns,
        between_ns: Some(ends.lasted_ns - (ends.sights - 1.0) * kept_ns + of_kept),
    }
}

/// What journeys are like, along whichever way.
#[derive(Clone, Copy)]
struct MeanJourney {
    lasted_ns: f64,
    sights: f64,
}

impl MeanJourney {
    /// `None` where there are none.
    fn of(traces: &Traces) -> Option<Self> {
        let sum = |of: fn(&TracedRoute) -> u64| traces.routes.iter().map(of).sum::<u64>() as f64;
        let journeys = sum(|it| it.journeys);
        (journeys > 0.0).then(|| Self {
            lasted_ns: sum(|it| it.lasted_ns) / journeys,
            sights: sum(|it| it.journeys * it.steps.len() as u64) / journeys,
        })
    }
}

/// Those who took the same way, together.
fn traces(journeys: impl Iterator<Item = Vec<Sighting>>, longest_ns: u64) -> Traces {
    let mut traces = Traces::default();
    let mut routes: BTreeMap<Vec<(u32, u32, bool)>, TracedRoute> = BTreeMap::new();
    for sightings in journeys {
        let took = match &sightings[..] {
            [first, .., last] => last.at_ns - first.at_ns,
            _ => 0,
        };
        if took > longest_ns {
            traces.too_long += 1;
            continue;
        }
        let shape = sightings
            .iter()
            .map(|it| (it.namespace, it.device, it.sent));
        let route = routes
            .entry(shape.collect())
            .or_insert_with(|| TracedRoute {
                journeys: 0,
                lasted_ns: 0,
                steps: sightings.iter().map(Sighting::step).collect(),
            });
        route.journeys += 1;
        route.lasted_ns += took;
        for at in 1..sightings.len() {
            route.steps[at].sum_ns += sightings[at].at_ns - sightings[at - 1].at_ns;
        }
    }
    let most = routes.values().map(|it| it.journeys).max().unwrap_or(0);
    for route in routes.into_values() {
        match route.journeys * RARE < most {
            true => traces.lost += route.journeys,
            false => traces.routes.push(route),
        }
    }
    traces
}

impl Sighting {
    fn step(&self) -> TracedStep {
        TracedStep {
            namespace: self.namespace,
            device: self.device,
            hook: match self.sent {
                true => Hook::Transmitted,
                false => Hook::Arrived,
            },
            comes: false,
            sum_ns: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sighting(at_ns: u64, device: u32, sent: bool) -> Sighting {
        Sighting {
            at_ns,
            height: 0,
            namespace: 1,
            device,
            sent,
        }
    }

    #[test]
    fn taps_read_a_power_of_two_within_bounds() {
        let asked = [1, 16, 17, 1 << 40];
        assert_eq!(asked.map(one_in), [16, 16, 32, 1 << 16]);
    }

    /// A request that took 30 ns from one device to the next.
    fn whole(start: u64) -> Vec<Sighting> {
        vec![sighting(start + 30, 2, false), sighting(start, 1, true)]
    }

    /// The first request of a load, a hundred after the warm-up, and when the next would be.
    fn in_window() -> (Sightings, u64) {
        let at = |number| 7_000 + TIMING.warm_up_ns + number * 1_000;
        let mut seen: Sightings = (0..100)
            .map(|number| (100 + number, whole(at(number))))
            .collect();
        seen.insert(0, whole(7_000));
        (seen, at(100))
    }

    /// Requests that take 100 ns from device to device, each tap 10 ns more from those that it
    /// keeps: those with even numbers at four devices, and odd ones at the first and the last.
    #[test]
    fn what_taps_take_from_those_that_they_keep_is_told() {
        let first = |number| 7_000 + TIMING.warm_up_ns + number * 1_000;
        let sights = |number| match number % 2 {
            0 => [0, 110, 220, 330].to_vec(),
            _ => [0, 310].to_vec(),
        };
        let of_number = |number| {
            let times = sights(number);
            let devices = (0..times.len()).map(|at| if at + 1 == times.len() { 4 } else { at });
            let each = times.iter().zip(devices);
            let each = each.map(|(ns, device)| sighting(first(number) + ns, device as u32, true));
            (number, each.collect())
        };
        let mut seen: Sightings = (1..=100).map(of_number).collect();
        seen.insert(0, whole(7_000));
        let all = tapped(seen.clone(), 2, 1_000);
        assert_eq!(
            (all.kept_ns, all.traces.routes[0].lasted_ns),
            (10.0, 50 * 330)
        );
        // Every other one passes all four, and the others two.
        assert_eq!(all.between_ns, Some(300.0 + (4.0 + 2.0) / 2.0 * 10.0));
        seen.retain(|number, _| number % 2 == 0);
        let alone = tapped(seen, 2, 1_000);
        assert_eq!((alone.kept_ns, alone.between_ns), (0.0, Some(330.0)));
        assert_eq!(tapped(Sightings::new(), 2, 1_000).between_ns, None);
    }

    #[test]
    fn what_began_in_the_warm_up_is_not_counted() {
        let (mut seen, _) = in_window();
        seen.insert(1, vec![sighting(7_500, 1, true), sighting(8_400, 2, false)]);
        seen.insert(
            2,
            vec![sighting(9_000, 1, true), sighting(99_000, 2, false)],
        );
        // It begins before the warm-up ends.
        seen.insert(3, whole(6_999 + TIMING.warm_up_ns));
        let traces = tapped(seen, 1, 1_000).traces;
        assert_eq!((traces.lost, traces.too_long), (0, 0));
        let [route] = &traces.routes[..] else {
            panic!("{traces:?}");
        };
        assert_eq!((route.journeys, route.lasted_ns), (100, 3_000));
    }

    #[test]
    fn sightings_of_a_number_are_a_journey_and_rare_ways_are_none() {
        let (mut seen, later) = in_window();
        seen.insert(200, vec![sighting(later, 2, false)]);
        let long = [sighting(later, 1, true), sighting(later + 9_000, 2, false)];
        seen.insert(201, long.into());
        let traces = tapped(seen, 1, 1_000).traces;
        assert_eq!((traces.lost, traces.too_long), (1, 1));
        let [route] = &traces.routes[..] else {
            panic!("{traces:?}");
        };
        assert_eq!(route.journeys, 100);
        let hooks: Vec<_> = route.steps.iter().map(|it| (it.hook, it.sum_ns)).collect();
        assert_eq!(hooks, [(Hook::Transmitted, 0), (Hook::Arrived, 3_000)]);
    }
}

//! Taps on the devices of a path, which an ordinary user may have in the lab's own namespaces.
//!
//! Each gives the moments at which a sample of the messages was at a device: the driver's on the
//! way out, the receive queue's on the way in. What lies between the taps of an end is in one
//! hop; the sender's end comes from the socket's own stamps.

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
) -> Result<(T, Traces), XrayError> {
    let one_in = one_in(sample.one_in);
    let mut taps = Vec::new();
    for (place, _) in places(standing) {
        taps.extend(open(place, size, one_in)?);
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
    Ok((done, traces(seen, sample.longest_ns)))
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
fn traces(mut seen: Sightings, longest_ns: u64) -> Traces {
    let mut traces = Traces::default();
    let mut routes: BTreeMap<Vec<(u32, u32, bool)>, TracedRoute> = BTreeMap::new();
    seen.values_mut().for_each(|it| it.sort_unstable());
    let first = seen.values().flatten().next();
    let counts_from = first.map_or(0, |it| it.at_ns + TIMING.warm_up_ns);
    let counts = |it: &Vec<Sighting>| it.first().is_some_and(|it| it.at_ns >= counts_from);
    for sightings in seen.into_values().filter(counts) {
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
        let traces = traces(seen, 1_000);
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
        let traces = traces(seen, 1_000);
        assert_eq!((traces.lost, traces.too_long), (1, 1));
        let [route] = &traces.routes[..] else {
            panic!("{traces:?}");
        };
        assert_eq!(route.journeys, 100);
        let hooks: Vec<_> = route.steps.iter().map(|it| (it.hook, it.sum_ns)).collect();
        assert_eq!(hooks, [(Hook::Transmitted, 0), (Hook::Arrived, 3_000)]);
    }
}

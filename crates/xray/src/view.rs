//! From what a tracer saw to hops with names.

use plumbline_record::Spans;

use crate::account::merged;
use crate::around::Surroundings;
use crate::hop::{NamedHop, Trip, hops};
use crate::load::mean_within;
use crate::traces::{TracedRoute, Traces};

/// The hops of all journeys, with their means.
pub(crate) fn hops_of(traces: &Traces, around: &Surroundings) -> Vec<NamedHop> {
    let list = |route: &TracedRoute| {
        let seen = route.steps.iter().map(|step| {
            let place = around.place(step.namespace, step.device, step.hook);
            (place, step.sum_ns as f64 / route.journeys as f64)
        });
        (route.journeys, hops(&seen.collect::<Vec<_>>()))
    };
    merged(traces.routes.iter().map(list).collect())
}

/// Hops between the sender's and the receiver's devices with those at the ends of the sender,
/// which its socket's stamps tell (L-17), by the same limit; as they are where there are none.
pub(crate) fn within_ends(
    mut hops: Vec<NamedHop>,
    spans: Option<&Spans>,
    limit_ns: u64,
) -> Vec<NamedHop> {
    let means = spans.and_then(|spans| {
        let mean = |times| mean_within(times, limit_ns);
        Some((
            mean(&spans.protocol)? + mean(&spans.queue)?,
            mean(&spans.wake_up)?,
        ))
    });
    let Some((protocol, wake_up)) = means else {
        return hops;
    };
    let at = hops.first().map(|hop| hop.at.clone()).unwrap_or_default();
    let end = |name: &str, trip, ns| NamedHop {
        name: name.to_owned(),
        at: at.clone(),
        trip,
        ns,
    };
    hops.insert(0, end("sender: protocol", Trip::Request, protocol));
    hops.push(end("sender: wake-up", Trip::Answer, wake_up));
    hops
}

/// What was dropped, in words, and how many packets.
pub(crate) fn drops_of(traces: &Traces, around: &Surroundings) -> Vec<(String, u64)> {
    let drops = traces.drops.iter().map(|drop| {
        let place = around.place(drop.namespace, drop.device, drop.hook);
        let device = place.device.as_ref().map(|it| format!(" {}", it.name));
        let device = device.unwrap_or_default();
        let text = format!("{} on {}{device}", drop.reason, place.namespace);
        (text, drop.packets)
    });
    drops.collect()
}

/// Journeys from end to end.
pub(crate) fn journeys_of(traces: &Traces) -> u64 {
    traces.routes.iter().map(|route| route.journeys).sum()
}

/// Why there are no journeys, where most of those that began ended on their way.
pub(crate) fn unseen(traces: &Traces) -> Option<String> {
    let ended = journeys_of(traces) + traces.too_long;
    let dropped: u64 = traces.drops.iter().map(|it| it.packets).sum();
    let [lost, no_room] = [traces.lost, traces.no_room];
    (ended <= lost + no_room + dropped).then(|| {
        format!(
            "of those that began, {lost} were lost sight of, as where a program takes packets and \
             sends them on, {dropped} packets were dropped, and {no_room} passed more places than \
             there is room for"
        )
    })
}

//! The layout of what `bpf/journey.c` keeps, byte by byte.

use plumbline_protocol::{Followed, FollowedPart, Hook, TracedRoute, TracedStep};

use crate::at_sockets::AtSockets;

const MOST_STEPS: usize = 96;
const STEP: usize = 24;
/// Bytes of a route before its steps.
const ROUTE_HEAD: usize = 24;
pub(crate) const ROUTE: usize = ROUTE_HEAD + MOST_STEPS * STEP;
/// Bytes of a journey before its route.
const JOURNEY_HEAD: usize = 176;
pub(crate) const JOURNEY: usize = JOURNEY_HEAD + ROUTE;

/// Fates, by their numbers.
pub(crate) const TOO_LONG: u32 = 0;
pub(crate) const LOST: u32 = 1;
pub(crate) const NO_ROOM: u32 = 3;
pub(crate) const FATES: u32 = 4;

pub(crate) fn order(followed: &Followed) -> [u8; 40] {
    let mut bytes = [0; 40];
    bytes[..4].copy_from_slice(&followed.client.to_ne_bytes());
    bytes[4..6].copy_from_slice(&followed.port.to_ne_bytes());
    bytes[6..8].copy_from_slice(&followed.listening.to_ne_bytes());
    bytes[8..16].copy_from_slice(&followed.one_in.to_ne_bytes());
    bytes[16..24].copy_from_slice(&followed.longest_ns.to_ne_bytes());
    bytes[24..28].copy_from_slice(&followed.server.to_ne_bytes());
    bytes[32..40].copy_from_slice(&followed.warm_up_ns.to_ne_bytes());
    bytes
}

/// A journey that has not begun.
pub(crate) fn journey(followed: &Followed, at_sockets: AtSockets) -> [u8; JOURNEY] {
    let mut bytes = [0; JOURNEY];
    let part: u32 = match followed.part {
        FollowedPart::Whole => 0,
        FollowedPart::Sender => 1,
        FollowedPart::Receiver => 2,
    };
    let is_confined = u32::from(!followed.inside.is_empty());
    let is_rehearsal = followed.one_in == 0;
    bytes[..4].copy_from_slice(&part.to_ne_bytes());
    bytes[4..8].copy_from_slice(&is_confined.to_ne_bytes());
    bytes[12..16].copy_from_slice(&u32::from(is_rehearsal).to_ne_bytes());
    let from_device = at_sockets != AtSockets::Linux6_16;
    let until_read = at_sockets == AtSockets::Linux5_10;
    bytes[16..20].copy_from_slice(&u32::from(from_device).to_ne_bytes());
    bytes[20..24].copy_from_slice(&u32::from(until_read).to_ne_bytes());
    bytes
}

/// How many of the sender's requests were answered, followed or not, and what these took in all.
pub(crate) fn answered(bytes: &[u8; JOURNEY]) -> (u64, u64) {
    (u64_at(bytes, 144), u64_at(bytes, 152))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut value = [0; 4];
    value.copy_from_slice(&bytes[at..at + 4]);
    u32::from_ne_bytes(value)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut value = [0; 8];
    value.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(value)
}

/// A step whose hook is not known was not written by our programs, and is left out.
pub(crate) fn route(bytes: &[u8; ROUTE]) -> TracedRoute {
    let steps = (u32_at(bytes, 8) as usize).min(MOST_STEPS);
    let step = |at: usize| {
        let step = &bytes[ROUTE_HEAD + at * STEP..][..STEP];
        Some(TracedStep {
            namespace: u32_at(step, 0),
            device: u32_at(step, 4),
            hook: Hook::of(u32_at(step, 8))?,
            comes: u32_at(step, 12) != 0,
            sum_ns: u64_at(step, 16),
        })
    };
    TracedRoute {
        journeys: u64_at(bytes, 0),
        lasted_ns: u64_at(bytes, 16),
        steps: (0..steps).filter_map(step).collect(),
    }
}

/// Namespace, device, hook and reason of packets that were dropped.
pub(crate) fn dropped(key: &[u8; 16]) -> Option<(u32, u32, Hook, u32)> {
    let hook = Hook::of(u32_at(key, 8))?;
    Some((u32_at(key, 0), u32_at(key, 4), hook, u32_at(key, 12)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_read_as_the_programs_write_them() {
        let mut bytes = [0; ROUTE];
        bytes[0] = 7;
        bytes[8] = 2;
        bytes[16] = 251;
        let second = ROUTE_HEAD + STEP;
        bytes[ROUTE_HEAD + 8] = 1;
        bytes[ROUTE_HEAD + 12] = 1;
        bytes[second] = 3;
        bytes[second + 4] = 41;
        bytes[second + 8] = 2;
        bytes[second + 16] = 250;
        let route = route(&bytes);
        assert_eq!((route.journeys, route.lasted_ns), (7, 251));
        assert_eq!(route.steps.len(), 2);
        assert_eq!(route.steps[0].hook, Hook::Sent);
        assert!(route.steps[0].comes);
        let second = route.steps[1];
        assert_eq!((second.namespace, second.device), (3, 41));
        assert_eq!((second.hook, second.sum_ns), (Hook::Queued, 250));
        assert!(!second.comes);
    }

    #[test]
    fn answers_are_read_where_the_programs_count_them() {
        let mut bytes = [0; JOURNEY];
        bytes[144] = 3;
        bytes[152] = 240;
        assert_eq!(answered(&bytes), (3, 240));
    }

    #[test]
    fn an_order_is_laid_out_as_the_programs_read_it() {
        let followed = Followed {
            part: FollowedPart::Receiver,
            client: 1,
            port: 2,
            server: 6,
            listening: 5,
            one_in: 3,
            longest_ns: 4,
            warm_up_ns: 7,
            inside: vec![6],
        };
        let bytes = order(&followed);
        assert_eq!((bytes[0], bytes[4], bytes[6]), (1, 2, 5));
        assert_eq!((bytes[8], bytes[16], bytes[24]), (3, 4, 6));
        assert_eq!(bytes[32], 7);
        let bytes = journey(&followed, AtSockets::Linux6_3);
        assert_eq!((bytes[0], bytes[4], bytes[12]), (2, 1, 0));
        assert_eq!((bytes[16], bytes[20]), (1, 0));
        let nobody = Followed {
            one_in: 0,
            ..followed
        };
        let bytes = journey(&nobody, AtSockets::Linux5_10);
        assert_eq!((bytes[12], bytes[16], bytes[20]), (1, 1, 1));
    }
}

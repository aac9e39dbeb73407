//! Lists of hops of several ways, as one.

use crate::hop::{NamedHop, Trip};

/// A hop among others of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HopKey {
    pub(crate) trip: Trip,
    pub(crate) name: String,
    /// The how manieth of this name on this trip.
    nth: usize,
}

fn keys(hops: &[NamedHop]) -> Vec<HopKey> {
    let key = |(at, hop): (usize, &NamedHop)| HopKey {
        trip: hop.trip,
        name: hop.name.clone(),
        nth: hops[..at]
            .iter()
            .filter(|it| it.trip == hop.trip && it.name == hop.name)
            .count(),
    };
    hops.iter().enumerate().map(key).collect()
}

/// The hops of several lists, each once, in an order that agrees with that of the first ones.
pub(crate) fn in_order<'a>(lists: impl Iterator<Item = &'a [NamedHop]>) -> Vec<(HopKey, String)> {
    let mut order: Vec<(HopKey, String)> = Vec::new();
    for list in lists {
        let mut next = 0;
        for (key, hop) in keys(list).into_iter().zip(list) {
            match order.iter().position(|(known, _)| *known == key) {
                Some(at) => next = at + 1,
                None => {
                    order.insert(next, (key, hop.at.clone()));
                    next += 1;
                }
            }
        }
    }
    order
}

/// A figure of the hop with this key; 0 where there is none.
pub(crate) fn value_of(hops: &[NamedHop], key: &HopKey, of: fn(&NamedHop) -> f64) -> f64 {
    let found = keys(hops).iter().position(|it| it == key);
    found.map_or(0.0, |at| of(&hops[at]))
}

/// One list of hops of several, each with so many journeys: their means, over all journeys.
pub(crate) fn merged(mut lists: Vec<(u64, Vec<NamedHop>)>) -> Vec<NamedHop> {
    lists.sort_by_key(|(journeys, _)| std::cmp::Reverse(*journeys));
    let all: u64 = lists.iter().map(|(journeys, _)| journeys).sum();
    let order = in_order(lists.iter().map(|(_, hops)| &hops[..]));
    let mean = |(key, at): (HopKey, String)| {
        let mean = |of: fn(&NamedHop) -> f64| {
            let each = lists.iter();
            let each = each.map(|(journeys, hops)| value_of(hops, &key, of) * *journeys as f64);
            each.sum::<f64>() / all as f64
        };
        NamedHop {
            ns: mean(|hop| hop.ns),
            cpu_ns: mean(|hop| hop.cpu_ns),
            sights: mean(|hop| hop.sights),
            cpu_sights: mean(|hop| hop.cpu_sights),
            ..NamedHop::new(key.name, &at, key.trip)
        }
    };
    order.into_iter().map(mean).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn hop(name: &str, trip: Trip, ns: f64) -> NamedHop {
        NamedHop {
            ns,
            cpu_ns: ns,
            ..NamedHop::new(name.to_owned(), "node1", trip)
        }
    }

    #[test]
    fn journeys_of_several_ways_are_one_list_of_means() {
        use Trip::{Answer, Request};
        let usual = vec![hop("veth", Request, 10.0), hop("veth", Answer, 10.0)];
        let rare = vec![
            hop("veth", Request, 20.0),
            hop("receive", Request, 4.0),
            hop("veth", Request, 2.0),
            hop("veth", Answer, 10.0),
        ];
        let all = merged(vec![(1, rare), (3, usual)]);
        let shown: Vec<_> = all.iter().map(|hop| (&*hop.name, hop.ns)).collect();
        assert_eq!(
            shown,
            [
                ("veth", 12.5),
                ("receive", 1.0),
                ("veth", 0.5),
                ("veth", 10.0)
            ]
        );
    }
}

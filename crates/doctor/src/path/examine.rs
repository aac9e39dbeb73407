//! Sends over a path what shows what is wrong with it.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use plumbline_harness::{Path, PathSnapshot, Side, TargetError};
use plumbline_protocol::{LocalAddress, Survey, SurveyedDevice};

use super::allowed::PathTrials;
use super::drops::Drops;
use super::post::{Heading, Post, Posts, TrainShape};
use super::seen::{OtherVersion, PathSeen, PlaceSeen, RouteReturn, TrainSeen, WaySeen};
use super::size;
use super::trial;

/// The first datagrams, before which nobody may know the way.
const FIRST: TrainShape = TrainShape {
    count: 5,
    packet_bytes: 100,
    gap: Duration::from_millis(1),
    patience: Duration::from_millis(300),
};
/// How often they are sent before a way counts as closed.
const FIRST_ATTEMPTS: usize = 3;

/// The light probe: small datagrams, many enough that one lost in a hundred is seen.
const PROBE: TrainShape = TrainShape {
    count: 500,
    packet_bytes: 200,
    gap: Duration::from_micros(500),
    patience: Duration::from_millis(200),
};
/// For how long a stream is sent.
const STREAM: Duration = Duration::from_millis(300);
/// How often a name server is asked, and how long an answer is waited for.
const NAMES: u32 = 20;
const NAME_PATIENCE: Duration = Duration::from_millis(500);
/// A device that carried this share of what was sent is on the way.
const MOST: f64 = 0.8;
/// The counters of datagrams that a socket's buffer had no room for.
const OVERRUNS: [&str; 2] = ["Udp.RcvbufErrors", "Udp6RcvbufErrors"];

/// Sees what becomes of packets on a path, and tries what is allowed.
pub(super) fn see(path: &dyn Path, allowed: &PathTrials) -> Result<PathSeen, TargetError> {
    refuse_front(path)?;
    let posts = Posts::start(path)?;
    let mut drops = Drops::open(allowed, path, &posts)?;
    let [client, server] = posts.ends();
    let there = posts.way([client, server], server.address)?;
    let back = posts.way([server, client], client.address)?;
    let before = surveys(&posts)?;
    for way in [there, back] {
        wake(&posts, way)?;
    }
    let mut ways = [WaySeen::default(), WaySeen::default()];
    for ((seen, way), is_there) in ways.iter_mut().zip([there, back]).zip([true, false]) {
        let route = way.from.survey(&[way.to.address])?.ways;
        let route = route.into_iter().next().flatten();
        *seen = WaySeen {
            from: way.from.name.clone(),
            to: way.to.name.clone(),
            at: way.at.ip().to_string(),
            device: route.map(|it| it.device).unwrap_or_default(),
            headers: if way.at.is_ipv4() { 40 } else { 60 },
            ..WaySeen::default()
        };
        let mut train = probe(path, &posts, &mut drops, way, is_there)?;
        let is_sound = train.lost() == 0 && train.taken.overtaken == 0;
        seen.trains.push(train);
        if !is_sound {
            train = probe(path, &posts, &mut drops, way, is_there)?;
            seen.trains.push(train);
        }
    }
    for (seen, way) in ways.iter_mut().zip([there, back]) {
        if seen.is_open() {
            seen.size = size::find(&posts, way)?;
        }
    }
    let are_open = ways.iter().all(WaySeen::is_open);
    if are_open {
        for (seen, way) in ways.iter_mut().zip([there, back]) {
            seen.stream = posts.stream(way, STREAM)?;
        }
    }
    let crossed = ways.each_ref().map(|it| it.trains[0].crossed.clone());
    let trials = match allowed.offloads && are_open {
        true => Some(trial::all(&posts, [there, back], &crossed)?),
        false => None,
    };
    let returns = returns(&posts, client.address, &crossed)?;
    let after = surveys(&posts)?;
    let other_version = other_version(&posts, there, [&after[0], &after[after.len() - 1]])?;
    let name = client.resolve(NAMES, NAME_PATIENCE)?;
    let places = posts.all().iter().zip(before.into_iter().zip(after));
    Ok(PathSeen {
        command: allowed.command(),
        ways,
        places: places
            .map(|(post, (before, after))| PlaceSeen {
                name: post.name.clone(),
                before,
                after,
            })
            .collect(),
        other_version,
        name,
        returns,
        trials,
    })
}

/// What is sent is for the receiver itself.
fn refuse_front(path: &dyn Path) -> Result<(), TargetError> {
    let server = path.server();
    let listening = SocketAddr::new(server.address(), server.port());
    let asked = path.front(listening);
    if asked == listening {
        return Ok(());
    }
    Err(TargetError::Unsupported {
        what: format!("the path to {asked}, an address before the receiver"),
        needs: "a path to the receiver itself, such as --path pod".to_owned(),
    })
}

fn surveys(posts: &Posts) -> Result<Vec<Survey>, TargetError> {
    posts.all().iter().map(|post| post.survey(&[])).collect()
}

/// Lets everybody on the way learn of both ends.
fn wake(posts: &Posts, way: Heading<'_>) -> Result<(), TargetError> {
    for _ in 0..FIRST_ATTEMPTS {
        let (sent, taken) = posts.train(way, FIRST)?;
        if sent.sent > 0 && taken.arrived == sent.sent {
            break;
        }
    }
    Ok(())
}

/// Sends the light probe, and sees who carried it.
fn probe(
    path: &dyn Path,
    posts: &Posts,
    drops: &mut Drops<'_>,
    way: Heading<'_>,
    is_there: bool,
) -> Result<TrainSeen, TargetError> {
    let early = surveys(posts)?;
    let before = path.snapshot()?;
    let (train, dropped) = drops.watch(&early, posts, way, PROBE)?;
    let (sent, taken) = train;
    let after = path.snapshot()?;
    let late = surveys(posts)?;
    let most = f64::from(sent.sent) * MOST;
    let (mut crossed, mut sent_by) = (BTreeMap::new(), BTreeMap::new());
    let mut device_drops = Vec::new();
    for (post, (early, late)) in posts.all().iter().zip(early.iter().zip(&late)) {
        let at_least = |count: fn(&SurveyedDevice) -> u64| {
            let gained = gained(early, late, count).into_iter();
            // Nothing was sent: nothing was carried.
            let many = gained.filter(|(_, more)| most > 0.0 && *more as f64 >= most);
            many.map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
        };
        let name = &post.name;
        crossed.insert(name.clone(), at_least(|it| it.rx_packets + it.tx_packets));
        sent_by.insert(name.clone(), at_least(|it| it.tx_packets));
        let dropped = gained(early, late, |it| it.dropped).into_iter();
        let dropped = dropped.filter(|(_, more)| *more > 0);
        device_drops.extend(dropped.map(|(device, more)| (format!("{device} of {name}"), more)));
    }
    let at_end = posts.all().iter().position(|it| std::ptr::eq(it, way.to));
    let overrun = at_end.map_or(0, |at| {
        let sum = |it: &Survey| -> u64 {
            let counts = OVERRUNS.iter().filter_map(|name| it.counters.get(*name));
            counts.sum()
        };
        sum(&late[at]).saturating_sub(sum(&early[at]))
    });
    Ok(TrainSeen {
        sent,
        taken,
        overrun,
        carried: carried(path, &before, &after, is_there),
        crossed,
        sent_by,
        dropped,
        device_drops,
    })
}

/// How much a count of each device grew between two surveys.
fn gained<'a>(
    early: &Survey,
    late: &'a Survey,
    count: fn(&SurveyedDevice) -> u64,
) -> Vec<(&'a str, u64)> {
    let before = |device: &SurveyedDevice| {
        let found = early.devices.iter().find(|it| it.name == device.name);
        found.map_or(0, count)
    };
    let devices = late.devices.iter();
    let gained = devices.map(|it| (it.name.as_str(), count(it).saturating_sub(before(it))));
    gained.collect()
}

/// How many packets each device of the path carried one way between two snapshots, in the
/// order of that way.
fn carried(
    path: &dyn Path,
    before: &PathSnapshot,
    after: &PathSnapshot,
    is_there: bool,
) -> Vec<(String, u64)> {
    let count = |(namespace, device): &(String, String), sends: bool| {
        let find = |snapshot: &PathSnapshot| {
            let mut devices = snapshot.devices.iter();
            let found = devices.find(|it| it.namespace == *namespace && it.device == *device)?;
            Some(if sends {
                found.tx_packets
            } else {
                found.rx_packets
            })
        };
        Some(find(after)?.saturating_sub(find(before)?))
    };
    let legs = path.legs().into_iter();
    let of_leg = legs.filter(|leg| leg.is_private).filter_map(|leg| {
        let sends = match leg.side {
            Side::Sends => is_there,
            Side::Receives => !is_there,
            Side::Either => return None,
        };
        let packets: Option<u64> = leg.devices.iter().map(|it| count(it, sends)).sum();
        let names: Vec<String> = leg
            .devices
            .iter()
            .map(|(namespace, device)| format!("{device} of {namespace}"))
            .collect();
        Some((names.join(" and "), packets?))
    });
    let mut carried: Vec<_> = of_leg.collect();
    if !is_there {
        carried.reverse();
    }
    carried
}

/// Places that give what comes back to a neighbour by another device than what goes there comes
/// by, although the same neighbour is on the link of that device too.
fn returns(
    posts: &Posts,
    to: IpAddr,
    [there, back]: &[BTreeMap<String, Vec<String>>; 2],
) -> Result<Vec<RouteReturn>, TargetError> {
    let mut returns = Vec::new();
    for post in posts.all() {
        let (Some(there), Some(back)) = (there.get(&post.name), back.get(&post.name)) else {
            continue;
        };
        let only_there: Vec<&String> = there.iter().filter(|it| !back.contains(it)).collect();
        let [device] = only_there[..] else { continue };
        let survey = post.survey(&[to])?;
        let Some(Some(way)) = survey.ways.first() else {
            continue;
        };
        let Some(gateway) = way.gateway else { continue };
        let mut addresses = survey.addresses.iter();
        let is_near = addresses.any(|it| it.device == *device && it.shares_prefix(gateway));
        if is_near && back.contains(&way.device) && !there.contains(&way.device) {
            returns.push(RouteReturn {
                place: post.name.clone(),
                device: device.clone(),
                gateway,
                to,
            });
        }
    }
    Ok(returns)
}

/// Tries the other IP version, where both ends have addresses of it.
fn other_version(
    posts: &Posts,
    there: Heading<'_>,
    [client, server]: [&Survey; 2],
) -> Result<Option<OtherVersion>, TargetError> {
    let is_v4 = there.at.is_ipv4();
    let is_other = |it: &&LocalAddress| it.address.is_ipv4() != is_v4 && is_global(it.address);
    let of_other = |survey: &Survey| survey.addresses.iter().find(is_other).cloned();
    let (Some(_), Some(of_server)) = (of_other(client), of_other(server)) else {
        return Ok(None);
    };
    let address = of_server.address;
    let route = there.from.survey(&[address])?.ways;
    let has_route = route.iter().any(Option::is_some);
    let ends: [&Post; 2] = posts.ends();
    let way = posts.way(ends, address)?;
    let (sent, taken) = posts.train(way, FIRST)?;
    Ok(Some(OtherVersion {
        version: if is_v4 { 6 } else { 4 },
        address: address.to_string(),
        device: of_server.device,
        prefix: of_server.prefix,
        has_route,
        is_open: taken.arrived > 0,
        error: sent.error,
    }))
}

/// Whether others may be told of an address, and would use it.
fn is_global(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => !it.is_loopback() && !it.is_link_local() && !it.is_unspecified(),
        IpAddr::V6(it) => !it.is_loopback() && !it.is_unicast_link_local() && !it.is_unspecified(),
    }
}

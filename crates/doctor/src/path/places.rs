//! What the places on a path say of it.

use std::collections::BTreeMap;

use plumbline_protocol::SurveyedDevice;

use super::seen::{OffloadTrial, PathSeen, PlaceSeen, WaySeen};
use super::trial::FASTER;
use crate::finding::{Certainty, Finding};
use crate::machine::raise_tracked;

/// How full a table of tracked connections may be.
const MOST_TRACKED: f64 = 0.8;
/// Features whose absence costs throughput, and the words by which `ethtool -K` switches them.
const OFFLOADS: [(&str, &str); 3] = [
    ("rx-gro", "gro"),
    ("tx-tcp-segmentation", "tso"),
    ("tx-generic-segmentation", "gso"),
];

/// Judges all places.
pub(super) fn judge(seen: &PathSeen) -> Vec<Finding> {
    let places = &seen.places;
    let mut findings = vec![checksums(seen), tracking(places), reverse_path(places)];
    findings.push(route_back(seen));
    findings.push(offloads(seen));
    findings.extend(seen.trials.as_deref().map(trials));
    findings.push(other_version(seen));
    findings
}

/// What is said of each place, joined; `None` where nothing is.
fn joined<T>(all: &[T], say: impl Fn(&T) -> Option<String>) -> Option<String> {
    let said: Vec<String> = all.iter().filter_map(say).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

fn checksums(seen: &PathSeen) -> Finding {
    let grown = |place: &PlaceSeen| {
        let grown = place
            .grown(|name| name.ends_with("InCsumErrors"))
            .into_iter();
        let words: Vec<String> = grown.map(|(name, by)| format!("{by} {name}")).collect();
        (!words.is_empty()).then(|| format!("{} in {}", words.join(", "), place.name))
    };
    let Some(wrong) = joined(&seen.places, grown) else {
        return Finding::good("checksums", "none was wrong");
    };
    let evidence = format!("packets with wrong checksums arrived: {wrong}");
    let wrong = seen.places.iter().filter(|it| grown(it).is_some());
    let senders: Vec<_> = wrong.flat_map(|place| senders(seen, place)).collect();
    // Those that leave the sums to what follows.
    let leaves = |(_, device): &&(&PlaceSeen, &SurveyedDevice)| {
        let mut off = device.switched_off.iter();
        !off.any(|it| it.starts_with("tx-checksum"))
    };
    let leaving: Vec<_> = senders.iter().filter(leaves).collect();
    let remedy = match (senders.is_empty(), leaving.is_empty()) {
        (true, _) => {
            "who has computed them is not seen: find out who changes packets on the way, and \
             whether a sender leaves them to a card or a tunnel that spoils them"
        }
        (false, true) => {
            "the sender's stack has computed them, so somebody on the way spoils them: find out \
             who changes packets, and update drivers and kernels there"
        }
        (false, false) => {
            "have the stack compute them before the tunnel or card; then update the driver or the \
             kernel that spoils them"
        }
    };
    let found = Finding::bad("checksums", evidence, remedy);
    if leaving.is_empty() {
        return found.shown_by("each place on the way", ["nft -a list ruleset"]);
    }
    leaving.iter().fold(found, |found, (place, device)| {
        found.by(&place.name, switch(&device.name, &["tx"], "off"))
    })
}

/// The devices by which that left which a place takes for itself: those of the other end; or of the
/// node behind that, of a place between both, which takes what a tunnel has brought. None where they
/// are not seen.
fn senders<'a>(seen: &'a PathSeen, place: &PlaceSeen) -> Vec<(&'a PlaceSeen, &'a SurveyedDevice)> {
    let end = |name: &str| seen.places.iter().find(|it| it.name == name);
    if let Some(way) = seen.ways.iter().find(|way| way.to == place.name) {
        let sender = end(&way.from).and_then(|it| Some((it, it.device(&way.device)?)));
        return sender.into_iter().collect();
    }
    let is_end = |it: &PlaceSeen| seen.ways.iter().any(|way| way.from == it.name);
    let mut nodes = seen.places.iter().filter(|it| !is_end(it));
    let first = nodes.next();
    let last = nodes.next_back();
    let mut senders = Vec::new();
    for (way, node) in seen.ways.iter().zip([first, last]) {
        let Some(node) = node.filter(|it| it.name != place.name) else {
            continue;
        };
        let trains = way.trains.iter().take(1);
        let names = trains.filter_map(|it| it.sent_by.get(&node.name)).flatten();
        senders.extend(names.filter_map(|name| Some((node, node.device(name)?))));
    }
    senders
}

fn tracking(places: &[PlaceSeen]) -> Finding {
    let full = |place: &PlaceSeen| {
        let (entries, max, dropped) = place.after.tracked;
        let more = dropped.saturating_sub(place.before.tracked.2);
        let is_full = entries as f64 > max as f64 * MOST_TRACKED;
        let lost = match more {
            0 => String::new(),
            _ => format!(", {more} dropped for want of room meanwhile"),
        };
        (is_full || more > 0).then(|| format!("{entries} of {max} in {}{lost}", place.name))
    };
    if let Some(said) = joined(places, full) {
        let found = Finding::bad(
            "connection tracking",
            format!("tables of tracked connections are nearly full: {said}"),
            "`conntrack -L` there shows whose they are; the limit is that of the machine",
        );
        let full = places.iter().filter(|place| full(place).is_some());
        return full.fold(found, |found, place| {
            let machine = format!("the machine of {}", place.name);
            found.by(&machine, raise_tracked(place.after.tracked.1))
        });
    }
    let most = places.iter().map(|place| place.after.tracked);
    let most = most.filter(|(_, max, _)| *max > 0).max();
    Finding::good(
        "connection tracking",
        match most {
            Some((entries, max, _)) => format!("at most {entries} of {max} connections"),
            None => "none on the way that can be seen".to_owned(),
        },
    )
}

fn reverse_path(places: &[PlaceSeen]) -> Finding {
    let mut said = Vec::new();
    let mut loosen = Vec::new();
    for place in places {
        let grown = place.grown(|name| name == "TcpExt.IPReversePathFilter");
        let Some(by) = grown.values().next() else {
            continue;
        };
        let of_all = place.after.rp_filter.unwrap_or_default();
        let devices = place.after.devices.iter();
        let strict = devices.filter(|it| it.rp_filter.map(|own| own.max(of_all)) == Some(1));
        let strict: Vec<&str> = strict.map(|it| it.name.as_str()).collect();
        let name = &place.name;
        said.push(format!("{by} in {name}, strict on {}", strict.join(", ")));
        // Where a device has no address, the kernel's loose filter drops all that the strict one
        // does.
        let mode = |device: &str| {
            let mut addresses = place.after.addresses.iter();
            let has_own = addresses.any(|it| it.device == device && it.address.is_ipv4());
            (device.to_owned(), if has_own { 2 } else { 0 })
        };
        let modes: Vec<_> = strict.into_iter().map(mode).collect();
        let is_held = of_all == 1 && modes.iter().any(|(_, mode)| *mode == 0);
        let all = is_held.then(|| ("all".to_owned(), 0));
        loosen.extend(all.into_iter().chain(modes).map(|it| (name, it)));
    }
    if said.is_empty() {
        return Finding::good("reverse path filter", "dropped nothing");
    }
    let found = Finding::bad(
        "reverse path filter",
        format!(
            "packets were dropped because their source is routed elsewhere: {}",
            said.join("; ")
        ),
        "route both directions alike, or make the filter loose (2), which without an address on \
         the device means off (0); the greater one of a device's and `all` counts",
    );
    loosen.into_iter().fold(found, |found, (name, (of, mode))| {
        // With slashes, for a name may have dots.
        found.by(
            name,
            format!("sysctl -w net/ipv4/conf/{of}/rp_filter={mode}"),
        )
    })
}

/// Places in which each direction crosses a device that the other one does not.
fn route_back(seen: &PathSeen) -> Finding {
    let [there, back] = &seen.ways;
    let first = |way: &WaySeen| -> BTreeMap<String, Vec<String>> {
        way.trains
            .first()
            .map(|it| it.crossed.clone())
            .unwrap_or_default()
    };
    if !there.is_open() || !back.is_open() {
        let evidence = "not known where packets arrive one way at most";
        return Finding::good("route back", evidence).with(Certainty::Unknown);
    }
    let (one, other) = (first(there), first(back));
    let asymmetric: Vec<String> = one
        .iter()
        .filter_map(|(place, devices)| {
            let of_back = other.get(place)?;
            let only = |own: &[String], others: &[String]| {
                let own = own.iter().filter(|it| !others.contains(it));
                own.cloned().collect::<Vec<_>>().join(", ")
            };
            let (there, back) = (only(devices, of_back), only(of_back, devices));
            let differ = !there.is_empty() && !back.is_empty();
            differ.then(|| format!("{there} there and {back} back in {place}"))
        })
        .collect();
    let is_seen_once = |(place, devices): (&String, &Vec<String>)| {
        let of_back = other.get(place);
        of_back.is_some_and(|of_back| devices.is_empty() != of_back.is_empty())
    };
    if asymmetric.is_empty() && one.iter().any(is_seen_once) {
        let evidence = "not known: too few packets of one direction were seen on the way";
        return Finding::good("route back", evidence).with(Certainty::Unknown);
    }
    if asymmetric.is_empty() {
        return Finding::good("route back", "both directions cross the same devices");
    }
    let evidence = format!(
        "what comes back takes another way: {}",
        asymmetric.join("; ")
    );
    let remedy = "firewalls and connection tracking see one half only: compare `ip route get` of \
                  both addresses, and `ip rule`, in both places";
    let found = Finding::note("route back", evidence, remedy).with(Certainty::Sampled);
    seen.returns.iter().fold(found, |found, it| {
        let (to, gateway, device) = (it.to, it.gateway, &it.device);
        let command = format!("ip route replace {to} via {gateway} dev {device}");
        found.by(&it.place, command)
    })
}

/// What is switched off on devices that carried packets.
fn offloads(seen: &PathSeen) -> Finding {
    let mut crossed: Vec<(&PlaceSeen, &SurveyedDevice)> = Vec::new();
    for place in &seen.places {
        let trains = seen.ways.iter().flat_map(|way| &way.trains);
        let names = trains
            .filter_map(|it| it.crossed.get(&place.name))
            .flatten();
        for device in names.filter_map(|name| place.device(name)) {
            if !crossed
                .iter()
                .any(|(_, known)| std::ptr::eq(*known, device))
            {
                crossed.push((place, device));
            }
        }
    }
    let off = |device: &SurveyedDevice| {
        // A pair of virtual devices merges nothing unless it is asked to.
        let is_usual = |name: &str| name == "rx-gro" && device.kind == "veth";
        let is_off = |name: &str| device.switched_off.iter().any(|it| it == name);
        let off = OFFLOADS.iter();
        let off = off.filter(|(name, _)| is_off(name) && !is_usual(name));
        off.copied().unzip::<&str, &str, Vec<_>, Vec<_>>()
    };
    let said = joined(&crossed, |(place, device)| {
        let (names, _) = off(device);
        let at = format!("{} of {}", device.name, place.name);
        (!names.is_empty()).then(|| format!("{} on {at}", names.join(", ")))
    });
    let Some(said) = said else {
        let evidence = format!("none is switched off on {} devices", crossed.len());
        return Finding::good("offloads", evidence);
    };
    let found = Finding::note(
        "offloads",
        format!("switched off: {said}"),
        "switch them on, unless one of them is broken there: --try-offloads shows that",
    );
    crossed.iter().fold(found, |found, (place, device)| {
        let (_, words) = off(device);
        match words.is_empty() {
            true => found,
            false => found.by(&place.name, switch(&device.name, &words, "on")),
        }
    })
}

/// The command that switches offloads of a device.
fn switch(device: &str, words: &[&str], to: &str) -> String {
    let each: Vec<String> = words.iter().map(|word| format!("{word} {to}")).collect();
    format!("ethtool -K {device} {}", each.join(" "))
}

fn trials(trials: &[OffloadTrial]) -> Finding {
    if trials.is_empty() {
        let evidence = "no offload could be switched here";
        return Finding::good("offload trial", evidence).with(Certainty::Unknown);
    }
    let gigabits = |rate: f64| format!("{:.2} Gbit/s", rate / 1e9);
    let broken = trials.iter().filter(|it| it.off > it.on * FASTER);
    let worst = broken.max_by(|a, b| (a.off / a.on).total_cmp(&(b.off / b.on)));
    let Some(broken) = worst else {
        let best = trials.iter().map(|it| it.on).fold(0.0, f64::max);
        let share = |it: &OffloadTrial| {
            let words = it.offload.ethtool_words().join(", ");
            // Nothing may have got over either way.
            format!("{} {words}: {:.1}×", it.place, it.off / it.on.max(1.0))
        };
        let each: Vec<String> = trials.iter().map(share).collect();
        return Finding::good(
            "offload trial",
            format!(
                "none of {} makes a stream {FASTER} times as fast when it is off; with all on, {}; \
                 with one off, so many times as fast (in the direction that gains most): {}",
                trials.len(),
                gigabits(best),
                each.join("; ")
            ),
        )
        .with(Certainty::Sampled);
    };
    let words = broken.offload.ethtool_words();
    let devices = broken.devices.join(", ");
    let evidence = format!(
        "with {} off on {devices} of {}, a stream {} gets {}, and with it on {}; it was put back",
        words.join(", "),
        broken.place,
        broken.way,
        gigabits(broken.off),
        gigabits(broken.on)
    );
    let remedy = "leave it off there until the driver or the kernel that breaks it is updated";
    let found = Finding::bad("offload trial", evidence, remedy);
    broken.devices.iter().fold(found, |found, device| {
        found.by(&broken.place, switch(device, words, "off"))
    })
}

fn other_version(seen: &PathSeen) -> Finding {
    const CHECK: &str = "other IP version";
    let Some(other) = &seen.other_version else {
        return Finding::good(CHECK, "not both ends have addresses of one");
    };
    let (version, address) = (other.version, &other.address);
    if other.is_open {
        return Finding::good(CHECK, format!("IPv{version} arrives at {address} too"));
    }
    let why = match (&other.error, other.has_route) {
        (_, false) => "; there is no route".to_owned(),
        (Some(error), _) => format!("; the sender was told: {error}"),
        (None, true) => "; nobody says why".to_owned(),
    };
    Finding::bad(
        CHECK,
        format!(
            "both ends have addresses of IPv{version}, and nothing arrives at {address}{why}: \
             programs that try it first wait until they give up"
        ),
        format!("carry IPv{version} on the path too, or take the address away"),
    )
    .by(
        &seen.ways[0].to,
        format!(
            "ip -{version} addr del {address}/{} dev {}",
            other.prefix, other.device
        ),
    )
}

#[cfg(test)]
mod tests {
    use plumbline_protocol::{LocalAddress, OffloadGroup};

    use super::super::seen::{OtherVersion, RouteReturn, TrainSeen};
    use super::*;
    use crate::finding::Severity;

    fn device(name: &str, kind: &str) -> SurveyedDevice {
        SurveyedDevice {
            name: name.to_owned(),
            kind: kind.to_owned(),
            ..SurveyedDevice::default()
        }
    }

    /// A node that both directions cross.
    fn healthy() -> PathSeen {
        let mut seen = PathSeen::default();
        let mut node = PlaceSeen {
            name: "node1".to_owned(),
            ..PlaceSeen::default()
        };
        node.after.devices = vec![device("eth0", "veth"), device("eth1", "veth")];
        seen.places = vec![node];
        for way in &mut seen.ways {
            let mut train = TrainSeen::default();
            train.taken.arrived = 1;
            let crossed = vec!["eth0".to_owned()];
            train.crossed.insert("node1".to_owned(), crossed);
            way.trains = vec![train];
        }
        seen
    }

    /// Holds what is found of a path to one finding; gives its commands.
    #[track_caller]
    fn is_wrong(seen: &PathSeen, check: &str, says: &str) -> Vec<String> {
        let found = judge(seen).into_iter();
        let wrong: Vec<_> = found.filter(|it| it.level != Severity::Good).collect();
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        assert_eq!(wrong[0].what, check);
        assert!(wrong[0].evidence.contains(says), "{wrong:?}");
        assert!(wrong[0].remedy.as_ref().is_some_and(|it| !it.is_empty()));
        let commands = wrong[0].commands.iter();
        commands
            .map(|it| format!("{}: {}", it.place, it.command))
            .collect()
    }

    #[test]
    fn a_healthy_path_has_no_finding() {
        let found = judge(&healthy());
        assert!(
            found.iter().all(|it| it.level == Severity::Good),
            "{found:?}"
        );
    }

    #[test]
    fn counters_that_grew_are_named_with_their_place() {
        let grown = |name: &str| {
            let mut seen = healthy();
            let place = &mut seen.places[0];
            place.before.counters.insert(name.to_owned(), 2);
            place.after.counters.insert(name.to_owned(), 9);
            seen
        };
        is_wrong(
            &grown("Udp.InCsumErrors"),
            "checksums",
            "7 Udp.InCsumErrors in node1",
        );
        let mut filtered = grown("TcpExt.IPReversePathFilter");
        filtered.places[0].after.devices[1].rp_filter = Some(1);
        let says = "7 in node1, strict on eth1";
        let commands = is_wrong(&filtered, "reverse path filter", says);
        let off = "node1: sysctl -w net/ipv4/conf/eth1/rp_filter=0";
        assert_eq!(commands, [off]);
        filtered.places[0].after.addresses = vec![LocalAddress {
            device: "eth1".to_owned(),
            address: [198, 18, 0, 1].into(),
            prefix: 24,
        }];
        let commands = is_wrong(&filtered, "reverse path filter", says);
        let loose = "node1: sysctl -w net/ipv4/conf/eth1/rp_filter=2";
        assert_eq!(commands, [loose]);
        // The greater one counts: the device's own 2, but not its own 0.
        let after = &mut filtered.places[0].after;
        after.rp_filter = Some(1);
        after.devices[1].rp_filter = Some(0);
        let commands = is_wrong(&filtered, "reverse path filter", says);
        assert_eq!(commands, [loose]);
        filtered.places[0].after.addresses.clear();
        let commands = is_wrong(&filtered, "reverse path filter", says);
        let all = "node1: sysctl -w net/ipv4/conf/all/rp_filter=0";
        assert_eq!(commands, [all, off]);
    }

    /// A path over a tunnel between two nodes, with wrong checksums in one place.
    fn spoiled(place: &str) -> PathSeen {
        let mut seen = healthy();
        let names = ["pod1", "node1", "node2", "pod2"];
        let node = seen.places.remove(0);
        seen.places = names
            .map(|it| PlaceSeen {
                name: it.to_owned(),
                ..node.clone()
            })
            .into();
        for (way, [from, to]) in seen
            .ways
            .iter_mut()
            .zip([["pod1", "pod2"], ["pod2", "pod1"]])
        {
            (way.from, way.to) = (from.to_owned(), to.to_owned());
            way.device = "eth0".to_owned();
        }
        let wrong = seen.places.iter_mut().find(|it| it.name == place);
        let counters = &mut wrong.expect("one of the four").after.counters;
        counters.insert("Udp.InCsumErrors".to_owned(), 7);
        for (way, node) in seen.ways.iter_mut().zip(["node1", "node2"]) {
            let devices = vec!["eth1".to_owned(), "eth0".to_owned()];
            way.trains[0].sent_by.insert(node.to_owned(), devices);
        }
        seen
    }

    /// Has the stack of a place compute checksums before a device.
    fn computes(seen: &mut PathSeen, place: &str, device: usize) {
        let place = seen.places.iter_mut().find(|it| it.name == place);
        let devices = &mut place.expect("one of the four").after.devices;
        devices[device].switched_off = vec!["tx-checksum-ip-generic".to_owned()];
    }

    #[track_caller]
    fn remedy(seen: &PathSeen, says: &str) {
        let found = checksums(seen);
        assert!(found.remedy.is_some_and(|it| it.contains(says)), "{says}");
        assert!(found.commands.is_empty(), "{:?}", found.commands);
    }

    #[test]
    fn checksums_are_computed_early_where_a_sender_leaves_them_to_a_device() {
        const EARLY: &str = "the sender's stack has computed them";
        let mut end = spoiled("pod2");
        let commands = is_wrong(&end, "checksums", "7 Udp.InCsumErrors in pod2");
        assert_eq!(commands, ["pod1: ethtool -K eth0 tx off"]);
        computes(&mut end, "pod1", 0);
        remedy(&end, EARLY);
        // What a tunnel brings to a node is the other node's.
        let mut tunnel = spoiled("node2");
        let says = "7 Udp.InCsumErrors in node2";
        let commands = is_wrong(&tunnel, "checksums", says);
        let [inner, outer] = ["eth1", "eth0"].map(|it| format!("node1: ethtool -K {it} tx off"));
        assert_eq!(commands, [inner, outer.clone()]);
        computes(&mut tunnel, "node1", 1);
        assert_eq!(is_wrong(&tunnel, "checksums", says), [outer]);
        computes(&mut tunnel, "node1", 0);
        remedy(&tunnel, EARLY);
        let back = is_wrong(&spoiled("node1"), "checksums", "in node1");
        assert!(back.iter().all(|it| it.starts_with("node2: ")), "{back:?}");
        assert_eq!(back.len(), 2);
        // Between two places nobody is asked who is not seen.
        let mut unseen = spoiled("node2");
        unseen.ways[0].trains[0].sent_by.clear();
        remedy(&unseen, "who has computed them is not seen");
    }

    #[test]
    fn a_table_that_is_nearly_full_is_named() {
        let mut seen = healthy();
        seen.places[0].after.tracked = (80, 100, 0);
        assert!(judge(&seen).iter().all(|it| it.level == Severity::Good));
        seen.places[0].after.tracked = (90, 100, 0);
        let commands = is_wrong(&seen, "connection tracking", "90 of 100 in node1");
        let more = "the machine of node1: sysctl -w net.netfilter.nf_conntrack_max=200";
        assert_eq!(commands, [more]);
        seen.places[0].after.tracked = (10, 100, 3);
        is_wrong(&seen, "connection tracking", "3 dropped");
    }

    #[test]
    fn another_way_back_is_named() {
        let mut seen = healthy();
        let back = &mut seen.ways[1].trains[0].crossed;
        back.insert("node1".to_owned(), vec!["eth1".to_owned()]);
        let says = "eth0 there and eth1 back in node1";
        assert!(is_wrong(&seen, "route back", says).is_empty());
        seen.returns = vec![RouteReturn {
            place: "node1".to_owned(),
            device: "eth0".to_owned(),
            gateway: [198, 18, 0, 2].into(),
            to: [10, 0, 0, 1].into(),
        }];
        let commands = is_wrong(&seen, "route back", says);
        let same = "node1: ip route replace 10.0.0.1 via 198.18.0.2 dev eth0";
        assert_eq!(commands, [same]);
    }

    #[test]
    fn offloads_that_are_usually_off_are_no_finding() {
        let mut seen = healthy();
        seen.places[0].after.devices[0].switched_off = vec!["rx-gro".to_owned()];
        seen.places[0].after.devices[1].switched_off = vec!["tx-tcp-segmentation".to_owned()];
        assert!(
            judge(&seen).iter().all(|it| it.level == Severity::Good),
            "not on the way"
        );
        seen.places[0].after.devices[0].kind = "vxlan".to_owned();
        let commands = is_wrong(&seen, "offloads", "rx-gro on eth0 of node1");
        assert_eq!(commands, ["node1: ethtool -K eth0 gro on"]);
    }

    #[test]
    fn an_offload_is_broken_where_a_stream_is_twice_as_fast_without() {
        let mut seen = healthy();
        let trial = |off| OffloadTrial {
            place: "node1".to_owned(),
            devices: vec!["eth0".to_owned()],
            offload: OffloadGroup::Segmentation,
            way: "from pod2 to pod1".to_owned(),
            on: 1e9,
            off,
        };
        seen.trials = Some(vec![trial(1.5e9), trial(0.26e9)]);
        let found = judge(&seen);
        assert!(found.iter().all(|it| it.level == Severity::Good));
        let mut tried = found.iter().filter(|it| it.what == "offload trial");
        let said = &tried.next().unwrap().evidence;
        let each = ": node1 tso, gso: 1.5×; node1 tso, gso: 0.3×";
        assert!(said.ends_with(each), "{said}");
        seen.trials = Some(vec![trial(1.5e9), trial(9e9)]);
        let commands = is_wrong(&seen, "offload trial", "from pod2 to pod1 gets 9.00 Gbit/s");
        assert_eq!(commands, ["node1: ethtool -K eth0 tso off gso off"]);
    }

    #[test]
    fn what_was_not_seen_is_not_called_good() {
        let unknown = |seen: &PathSeen, check: &str| {
            let mut found = judge(seen).into_iter();
            let found = found.find(|it| it.what == check).unwrap();
            assert_eq!(found.certainty, Certainty::Unknown, "{found:?}");
        };
        // Nobody has tried what could not be switched.
        let mut untried = healthy();
        untried.trials = Some(Vec::new());
        unknown(&untried, "offload trial");
        let mut half = healthy();
        let crossed = &mut half.ways[1].trains[0].crossed;
        crossed.insert("node1".to_owned(), Vec::new());
        unknown(&half, "route back");
    }

    #[test]
    fn the_other_version_is_named_where_it_leads_nowhere() {
        let mut seen = healthy();
        seen.ways[0].to = "pod2".to_owned();
        let mut other = OtherVersion {
            version: 6,
            address: "2001:2::1".to_owned(),
            device: "eth0".to_owned(),
            prefix: 64,
            has_route: true,
            is_open: true,
            error: None,
        };
        seen.other_version = Some(other.clone());
        assert!(judge(&seen).iter().all(|it| it.level == Severity::Good));
        other.is_open = false;
        seen.other_version = Some(other);
        let commands = is_wrong(&seen, "other IP version", "2001:2::1");
        let away = "pod2: ip -6 addr del 2001:2::1/64 dev eth0";
        assert_eq!(commands, [away]);
    }
}

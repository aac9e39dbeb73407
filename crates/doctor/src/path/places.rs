//! What the places on a path say of it.

use std::collections::BTreeMap;

use plumbline_protocol::SurveyedDevice;

use super::seen::{OffloadTrial, OtherVersion, PathSeen, PlaceSeen, WaySeen};
use super::trial::FASTER;
use crate::finding::{Certainty, Finding};

/// How full a table of tracked connections may be.
const MOST_TRACKED: f64 = 0.8;
/// Features whose absence costs throughput.
const OFFLOADS: [&str; 3] = ["rx-gro", "tx-tcp-segmentation", "tx-generic-segmentation"];

/// Judges all places.
pub(super) fn judge(seen: &PathSeen) -> Vec<Finding> {
    let places = &seen.places;
    let mut findings = vec![checksums(places), tracking(places), reverse_path(places)];
    findings.push(route_back(&seen.ways));
    findings.push(offloads(seen));
    findings.extend(seen.trials.as_deref().map(trials));
    findings.push(other_version(seen.other_version.as_ref()));
    findings
}

/// What is said of each place, joined; `None` where nothing is.
fn joined<T>(all: &[T], say: impl Fn(&T) -> Option<String>) -> Option<String> {
    let said: Vec<String> = all.iter().filter_map(say).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

fn checksums(places: &[PlaceSeen]) -> Finding {
    let wrong = joined(places, |place| {
        let grown = place.grown(|name| name.ends_with("InCsumErrors"));
        let words: Vec<String> = grown
            .iter()
            .map(|(name, by)| format!("{by} {name}"))
            .collect();
        (!words.is_empty()).then(|| format!("{} in {}", words.join(", "), place.name))
    });
    match wrong {
        None => Finding::good("checksums", "none was wrong"),
        Some(wrong) => Finding::bad(
            "checksums",
            format!("packets with wrong checksums arrived: {wrong}"),
            "have the stack compute them before the tunnel or card: ethtool -K DEVICE tx off, one \
             device after the other; then update the driver or the kernel that spoils them",
        ),
    }
}

fn tracking(places: &[PlaceSeen]) -> Finding {
    let full = joined(places, |place| {
        let (entries, max, dropped) = place.after.tracked;
        let more = dropped.saturating_sub(place.before.tracked.2);
        let is_full = entries as f64 > max as f64 * MOST_TRACKED;
        let lost = match more {
            0 => String::new(),
            _ => format!(", {more} dropped for want of room meanwhile"),
        };
        (is_full || more > 0).then(|| format!("{entries} of {max} in {}{lost}", place.name))
    });
    if let Some(full) = full {
        return Finding::bad(
            "connection tracking",
            format!("tables of tracked connections are nearly full: {full}"),
            "sysctl -w net.netfilter.nf_conntrack_max=N on the machine; `conntrack -L` shows whose \
             they are",
        );
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
    let dropped = joined(places, |place| {
        let grown = place.grown(|name| name == "TcpExt.IPReversePathFilter");
        let by = grown.values().next()?;
        let devices = place.after.devices.iter();
        let strict = devices.filter(|it| it.rp_filter == Some(1));
        let strict: Vec<&str> = strict.map(|it| it.name.as_str()).collect();
        let name = &place.name;
        Some(format!("{by} in {name}, strict on {}", strict.join(", ")))
    });
    match dropped {
        None => Finding::good("reverse path filter", "dropped nothing"),
        Some(dropped) => Finding::bad(
            "reverse path filter",
            format!("packets were dropped because their source is routed elsewhere: {dropped}"),
            "route both directions alike, or make the filter loose: sysctl -w \
             net.ipv4.conf.DEVICE.rp_filter=2 (the greater one of that and `all` counts)",
        ),
    }
}

/// Places in which each direction crosses a device that the other one does not.
fn route_back([there, back]: &[WaySeen; 2]) -> Finding {
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
    if asymmetric.is_empty() {
        return Finding::good("route back", "both directions cross the same devices");
    }
    let evidence = format!(
        "what comes back takes another way: {}",
        asymmetric.join("; ")
    );
    let remedy = "firewalls and connection tracking see one half only: compare ip route get of \
                  both addresses, and ip rule, in both places";
    Finding::note("route back", evidence, remedy).with(Certainty::Sampled)
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
    let off = joined(&crossed, |(place, device)| {
        // A pair of virtual devices merges nothing unless it is asked to.
        let is_usual = |name: &&str| *name == "rx-gro" && device.kind == "veth";
        let off = OFFLOADS.iter().filter(|it| !is_usual(it));
        let off: Vec<&str> = off
            .filter(|it| device.switched_off.iter().any(|name| name == *it))
            .copied()
            .collect();
        let at = format!("{} of {}", device.name, place.name);
        (!off.is_empty()).then(|| format!("{} on {at}", off.join(", ")))
    });
    match off {
        None => Finding::good(
            "offloads",
            format!("none is switched off on {} devices", crossed.len()),
        ),
        Some(off) => Finding::note(
            "offloads",
            format!("switched off: {off}"),
            "ethtool -K DEVICE gro on tso on gso on, unless one of them is broken there: \
             --try-offloads shows that",
        ),
    }
}

fn trials(trials: &[OffloadTrial]) -> Finding {
    let gigabits = |rate: f64| format!("{:.2} Gbit/s", rate / 1e9);
    let broken = trials.iter().filter(|it| it.off > it.on * FASTER);
    let worst = broken.max_by(|a, b| (a.off / a.on).total_cmp(&(b.off / b.on)));
    let Some(broken) = worst else {
        let best = trials.iter().map(|it| it.on).fold(0.0, f64::max);
        return Finding::good(
            "offload trial",
            format!(
                "none of {} makes a stream {FASTER} times as fast when it is off; with all on, {}",
                trials.len(),
                gigabits(best)
            ),
        )
        .with(Certainty::Sampled);
    };
    let words = broken.offload.ethtool_words();
    let devices = broken.devices.join(", ");
    let evidence = format!(
        "with {} off on {devices} of {}, a stream gets {}, and with it on {}; it was put back",
        words.join(", "),
        broken.place,
        gigabits(broken.off),
        gigabits(broken.on)
    );
    let off: Vec<String> = words.iter().map(|word| format!("{word} off")).collect();
    let first = broken.devices.first().map_or("DEVICE", String::as_str);
    let remedy = format!("in {}: ethtool -K {first} {}", broken.place, off.join(" "));
    Finding::bad("offload trial", evidence, remedy)
}

fn other_version(other: Option<&OtherVersion>) -> Finding {
    const CHECK: &str = "other IP version";
    let Some(other) = other else {
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
        format!(
            "carry IPv{version} on the path too, or take the addresses away: ip -{version} addr del"
        ),
    )
}

#[cfg(test)]
mod tests {
    use plumbline_protocol::OffloadGroup;

    use super::super::seen::TrainSeen;
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

    #[track_caller]
    fn is_wrong(seen: &PathSeen, check: &str, says: &str) {
        let found = judge(seen).into_iter();
        let wrong: Vec<_> = found.filter(|it| it.level != Severity::Good).collect();
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        assert_eq!(wrong[0].what, check);
        assert!(wrong[0].evidence.contains(says), "{wrong:?}");
        assert!(wrong[0].remedy.as_ref().is_some_and(|it| !it.is_empty()));
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
        is_wrong(
            &filtered,
            "reverse path filter",
            "7 in node1, strict on eth1",
        );
    }

    #[test]
    fn a_table_that_is_nearly_full_is_named() {
        let mut seen = healthy();
        seen.places[0].after.tracked = (80, 100, 0);
        assert!(judge(&seen).iter().all(|it| it.level == Severity::Good));
        seen.places[0].after.tracked = (90, 100, 0);
        is_wrong(&seen, "connection tracking", "90 of 100 in node1");
        seen.places[0].after.tracked = (10, 100, 3);
        is_wrong(&seen, "connection tracking", "3 dropped");
    }

    #[test]
    fn another_way_back_is_named() {
        let mut seen = healthy();
        let back = &mut seen.ways[1].trains[0].crossed;
        back.insert("node1".to_owned(), vec!["eth1".to_owned()]);
        is_wrong(&seen, "route back", "eth0 there and eth1 back in node1");
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
        is_wrong(&seen, "offloads", "rx-gro on eth0 of node1");
    }

    #[test]
    fn an_offload_is_broken_where_a_stream_is_twice_as_fast_without() {
        let mut seen = healthy();
        let trial = |off| OffloadTrial {
            place: "node1".to_owned(),
            devices: vec!["eth0".to_owned()],
            offload: OffloadGroup::Segmentation,
            on: 1e9,
            off,
        };
        seen.trials = Some(vec![trial(1.5e9)]);
        assert!(judge(&seen).iter().all(|it| it.level == Severity::Good));
        seen.trials = Some(vec![trial(1.5e9), trial(9e9)]);
        is_wrong(&seen, "offload trial", "9.00 Gbit/s");
    }

    #[test]
    fn the_other_version_is_named_where_it_leads_nowhere() {
        let mut seen = healthy();
        let mut other = OtherVersion {
            version: 6,
            address: "2001:2::1".to_owned(),
            has_route: true,
            is_open: true,
            error: None,
        };
        seen.other_version = Some(other.clone());
        assert!(judge(&seen).iter().all(|it| it.level == Severity::Good));
        other.is_open = false;
        seen.other_version = Some(other);
        is_wrong(&seen, "other IP version", "2001:2::1");
    }
}

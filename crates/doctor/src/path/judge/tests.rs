use std::net::{IpAddr, Ipv4Addr};

use plumbline_protocol::{MtuAnswer, SentStream, SentTrain, TakenTrain};

use super::*;
use crate::finding::Severity;
use crate::path::seen::SizeSeen;

const ROUTER: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1));

fn way(from: &str, to: &str) -> WaySeen {
    let sent = SentTrain {
        limit: 1450,
        sent: 500,
        ..SentTrain::default()
    };
    let taken = TakenTrain {
        arrived: 500,
        ..TakenTrain::default()
    };
    WaySeen {
        from: from.to_owned(),
        to: to.to_owned(),
        at: "10.0.0.2".to_owned(),
        device: "eth0".to_owned(),
        headers: 40,
        size: SizeSeen {
            limit: 1450,
            largest: 1450,
            swallowed: None,
            answer: None,
            is_refused: true,
        },
        trains: vec![TrainSeen {
            sent,
            taken,
            carried: vec![("eth0 of node1".to_owned(), 500)],
            ..TrainSeen::default()
        }],
        stream: SentStream {
            acked: 50_000_000,
            length_ns: 300_000_000,
            send_mss: 1398,
            ..SentStream::default()
        },
    }
}

fn healthy() -> PathSeen {
    PathSeen {
        command: "plumbline doctor --path vxlan".to_owned(),
        ways: [way("pod1", "pod2"), way("pod2", "pod1")],
        ..PathSeen::default()
    }
}

/// What is not as it should be.
fn wrong(seen: &PathSeen) -> Vec<(&'static str, String)> {
    let wrong = ways(seen).into_iter();
    let wrong = wrong.filter(|it| it.level != Severity::Good);
    wrong
        .inspect(|it| assert!(it.remedy.as_ref().is_some_and(|it| !it.is_empty())))
        .map(|it| (it.what, it.evidence))
        .collect()
}

#[track_caller]
fn is_wrong(seen: &PathSeen, check: &str, says: &[&str]) {
    let found = wrong(seen);
    let [(what, evidence)] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!(*what, check);
    for part in says {
        assert!(evidence.contains(part), "{part}: {evidence}");
    }
}

#[test]
fn a_healthy_path_has_no_finding() {
    assert_eq!(wrong(&healthy()), []);
}

#[test]
fn an_answer_that_holds_both_ways_is_no_finding() {
    let mut seen = healthy();
    for way in &mut seen.ways {
        way.size.largest = 1400;
        way.stream.send_mss = 1348;
        let router = ROUTER;
        way.size.answer = Some(MtuAnswer { mtu: 1400, router });
    }
    assert_eq!(wrong(&seen), []);
    let said = ways(&seen);
    let mtu = said.iter().find(|it| it.what == "MTU").unwrap();
    assert!(mtu.evidence.contains("198.18.0.1 answers"), "{mtu:?}");
}

#[test]
fn one_narrow_direction_is_named_with_who_says_so() {
    let mut seen = healthy();
    seen.ways[0].size.largest = 1250;
    seen.ways[0].stream.send_mss = 1198;
    is_wrong(&seen, "MTU", &["1250 B from pod1", "1450 B from pod2"]);
    assert_eq!(commands(&seen), NARROWED);
}

/// What has both ends send packets of at most 1250 B.
const NARROWED: [&str; 2] = [
    "pod1: ip link set dev eth0 mtu 1250",
    "pod2: ip link set dev eth0 mtu 1250",
];

/// The commands of all findings.
fn commands(seen: &PathSeen) -> Vec<String> {
    let commands = ways(seen).into_iter().flat_map(|it| it.commands);
    commands
        .map(|it| format!("{}: {}", it.place, it.command))
        .collect()
}

#[test]
fn a_black_hole_is_told_from_a_refusal() {
    let mut seen = healthy();
    seen.ways[0].size.largest = 1250;
    seen.ways[0].size.swallowed = Some(1251);
    seen.ways[0].stream.acked = 0;
    seen.ways[0].stream.retransmits = 5;
    is_wrong(
        &seen,
        "black hole",
        &["1251 B vanish", "up to 1450", "0 bytes"],
    );
    assert_eq!(commands(&seen), NARROWED);
}

#[test]
fn nothing_that_arrives_is_located() {
    let mut seen = healthy();
    let train = &mut seen.ways[1].trains[0];
    train.taken.arrived = 0;
    train.carried = vec![
        ("eth0 of pod2".to_owned(), 500),
        ("eth0 of node2".to_owned(), 0),
    ];
    is_wrong(&seen, "reach", &["500 at eth0 of pod2, 0 at eth0 of node2"]);
}

#[test]
fn loss_is_believed_when_it_happens_again_and_not_in_the_receiver() {
    let mut seen = healthy();
    seen.ways[0].trains[0].taken.arrived = 470;
    is_wrong(&seen, "loss", &["30 of 500"]);
    let whole = way("pod1", "pod2").trains.remove(0);
    seen.ways[0].trains.push(whole);
    assert_eq!(wrong(&seen), [], "the second was whole");
    seen.ways[0].trains.pop();
    seen.ways[0].trains[0].overrun = 30;
    assert_eq!(wrong(&seen), [], "no room in the receiver");
}

#[test]
fn overtaken_datagrams_are_named_where_they_are_many() {
    let mut seen = healthy();
    seen.ways[0].trains[0].taken.overtaken = 2;
    assert_eq!(wrong(&seen), []);
    seen.ways[0].trains[0].taken.overtaken = 60;
    is_wrong(&seen, "order", &["60 of 500"]);
    let again = way("pod1", "pod2").trains.remove(0);
    seen.ways[0].trains.push(again);
    assert_eq!(wrong(&seen), [], "the second was in order");
}

#[test]
fn small_segments_are_held_against_the_packets_that_pass() {
    let mut seen = healthy();
    seen.ways[0].stream.send_mss = 524;
    is_wrong(&seen, "MSS", &["524 B", "1398"]);
    // The other end sends no larger packets, and so offers no larger segments.
    seen.ways[1].size.largest = 576;
    is_wrong(&seen, "MTU", &["576 B"]);
}

#[test]
fn a_stream_that_stalls_is_named_where_nothing_else_is() {
    let mut seen = healthy();
    seen.ways[1].stream.acked = 2_000;
    seen.ways[1].stream.retransmits = 9;
    is_wrong(&seen, "TCP", &["2000 bytes", "9 segments"]);
    seen.ways[1].stream.retransmits = 0;
    assert_eq!(wrong(&seen), [], "a slow link");
}

/// What the finding of a check says of a path.
fn said(seen: &PathSeen, check: &str) -> String {
    let found = ways(seen).into_iter().filter(|it| it.what == check);
    Vec::from_iter(found.map(|it| it.evidence)).join("; ")
}

#[test]
fn only_directions_that_are_open_have_spared_their_datagrams() {
    assert_eq!(said(&healthy(), "loss"), "none of 1000 datagrams");
    let mut closed = healthy();
    closed.ways[1].trains[0].taken.arrived = 0;
    assert_eq!(said(&closed, "loss"), "none of 500 datagrams");
}

#[test]
fn what_is_lost_once_is_told_although_it_is_no_fault() {
    let mut once = healthy();
    let again = once.ways[0].trains[0].clone();
    once.ways[0].trains[0].taken.arrived = 499;
    once.ways[0].trains.push(again);
    assert_eq!(wrong(&once), []);
    let lost = said(&once, "loss");
    assert!(lost.starts_with("1 of 1500 datagrams"), "{lost}");
}

#[test]
fn a_stream_of_which_nothing_arrives_is_named() {
    let mut stuck = healthy();
    stuck.ways[1].stream.acked = 0;
    is_wrong(&stuck, "TCP", &["pod2 to pod1", "gets 0 bytes over"]);
}

#[test]
fn a_connection_that_is_refused_is_named_whatever_else_is_wrong() {
    let mut refused = healthy();
    refused.ways[0].stream = SentStream {
        refused: Some("timed out".to_owned()),
        ..SentStream::default()
    };
    let named = |seen: &PathSeen| {
        let found = wrong(seen).into_iter();
        let mut found = found.filter(|(what, _)| *what == "TCP");
        let (_, evidence) = found.next().expect("it is named");
        assert!(evidence.contains("no connection"), "{evidence}");
    };
    named(&refused);
    let mut hole = refused.clone();
    hole.ways[0].size.swallowed = Some(1251);
    named(&hole);
    refused.ways[0].trains[0].taken.arrived = 470;
    named(&refused);
}

#[test]
fn streams_that_hardly_get_on_are_not_called_good() {
    let tcp = |seen: &PathSeen| {
        let mut found = ways(seen).into_iter().filter(|it| it.what == "TCP");
        let tcp = found.next().expect("one of them all");
        assert_eq!(tcp.level, Severity::Good, "{tcp}");
        (tcp.certainty, tcp.evidence)
    };
    let good = (Certainty::Sampled, "streams flow both ways".to_owned());
    assert_eq!(tcp(&healthy()), good);
    let not_known = |seen: &PathSeen, says: &str| {
        let (certainty, evidence) = tcp(seen);
        assert_eq!(certainty, Certainty::Unknown, "{evidence}");
        assert!(
            evidence.contains("pod1 to pod2, a stream gets"),
            "{evidence}"
        );
        assert!(evidence.ends_with(says), "{evidence}");
    };
    let mut stuck = healthy();
    stuck.ways[0].stream.acked = 0;
    stuck.ways[0].stream.retransmits = 5;
    let mut hole = stuck.clone();
    hole.ways[0].size.swallowed = Some(1251);
    not_known(&hole, "5 segments again, where long packets vanish");
    stuck.ways[0].trains[0].taken.arrived = 470;
    not_known(&stuck, "5 segments again, where datagrams are lost");
    let mut slow = healthy();
    slow.ways[0].stream.acked = 2_000;
    not_known(&slow, "0 segments again, as over a slow link");
}

/// What shows where to look, of the finding of a check.
fn looks(seen: &PathSeen, check: &str) -> Vec<String> {
    let found = ways(seen).into_iter().filter(|it| it.what == check);
    let looks = found.flat_map(|it| it.looks);
    looks
        .map(|it| format!("{}: {}", it.place, it.command))
        .collect()
}

#[test]
fn what_shows_where_to_look_names_devices_and_the_command_as_it_was_typed() {
    let mut lossy = healthy();
    lossy.ways[0].trains[0].taken.arrived = 470;
    lossy.ways[1].device = "wg0".to_owned();
    let shown = looks(&lossy, "loss");
    let cards = ["pod1: ethtool -S eth0", "pod2: ethtool -S wg0"];
    assert!(shown.ends_with(&cards.map(str::to_owned)), "{shown:?}");
    let mut stuck = healthy();
    stuck.ways[0].stream.acked = 0;
    let again = "this shell: plumbline doctor --path vxlan --try-offloads";
    assert_eq!(looks(&stuck, "TCP"), [again]);
    stuck.trials = Some(Vec::new());
    let shown = looks(&stuck, "TCP");
    assert!(shown.iter().all(|it| it.starts_with(EACH)), "{shown:?}");
}

#[test]
fn devices_that_count_drops_are_named_where_datagrams_are_lost() {
    let mut seen = healthy();
    let drops = vec![("eth0 of node1".to_owned(), 30)];
    seen.ways[0].trains[0].device_drops = drops;
    assert_eq!(wrong(&seen), [], "others may have sent those");
    seen.ways[0].trains[0].taken.arrived = 470;
    let says = "; devices counted drops or errors: 30 at eth0 of node1";
    is_wrong(&seen, "loss", &[says]);
    seen.ways[0].trains[0].taken.arrived = 0;
    is_wrong(&seen, "reach", &[says]);
}

#[test]
fn what_no_program_saw_the_kernel_drop_is_not_said_to_have_gone_elsewhere() {
    let mut seen = healthy();
    seen.ways[0].trains[0].taken.arrived = 470;
    seen.ways[0].trains[0].dropped = Some(Ok(Vec::new()));
    is_wrong(&seen, "loss", &["none of them was seen to be dropped"]);
}

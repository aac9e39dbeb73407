//! What the packets that were sent say of a path.

use super::seen::{DroppedThere, PathSeen, TrainSeen, WaySeen};
use crate::finding::{Certainty, Finding};

/// Bytes of TCP's time stamps, which nearly all segments have.
const OPTION_BYTES: u32 = 12;
/// Bytes that further options may take: so much less is no finding.
const SPARE_BYTES: u32 = 60;
/// Bytes that a stream brings over any path that is any good, in the time that it has.
const LEAST_STREAM: u64 = 100_000;
/// Segments sent again, below which a slow stream may have other reasons.
const MANY_RETRANSMITS: u32 = 3;
/// Datagrams that overtook others, and their share, below which CPUs may have changed.
const MANY_OVERTAKEN: u32 = 3;
const OVERTAKEN_SHARE: f64 = 0.005;
/// Where somebody has to look who knows what is meant to be there, and by what.
const EACH: &str = "each place on the way";
const RULES: &str = "nft -a list ruleset";
const QUEUES: &str = "tc -s qdisc";

/// Judges both directions.
pub(super) fn ways(seen: &PathSeen) -> Vec<Finding> {
    let ways = &seen.ways;
    let mut findings = either(ways, reach, || {
        Finding::good("reach", "packets arrive both ways")
    });
    let open: Vec<&WaySeen> = ways.iter().filter(|way| way.is_open()).collect();
    if open.is_empty() {
        return findings;
    }
    findings.extend(sizes(ways));
    // It may be the card of either end.
    let cards = |found: Finding| {
        let known = ways.iter().filter(|way| !way.device.is_empty());
        known.fold(found, |found, way| {
            found.shown_by(&way.from, [format!("ethtool -S {}", way.device)])
        })
    };
    let lost = |way: &WaySeen| loss(way).map(cards);
    findings.extend(either(ways, lost, || few_lost(&open)));
    findings.extend(either(ways, order, || {
        Finding::good("order", "datagrams arrive as they were sent").with(Certainty::Sampled)
    }));
    if open.len() == ways.len() {
        let [there, back] = ways;
        let both = [(there, back), (back, there)];
        let small: Vec<Finding> = both.into_iter().filter_map(small_segments).collect();
        // Without a connection there are none.
        if small.is_empty() && ways.iter().all(|way| way.stream.refused.is_none()) {
            findings.push(Finding::good("MSS", segments(ways)));
        }
        findings.extend(small);
        findings.extend(either(ways, |way| stall(way, seen), || flow(ways)));
    }
    findings
}

/// What is wrong one way or the other, or that all is well.
fn either(
    ways: &[WaySeen; 2],
    judge: impl Fn(&WaySeen) -> Option<Finding>,
    good: impl FnOnce() -> Finding,
) -> Vec<Finding> {
    let bad: Vec<Finding> = ways.iter().filter_map(judge).collect();
    match bad.is_empty() {
        true => vec![good()],
        false => bad,
    }
}

fn reach(way: &WaySeen) -> Option<Finding> {
    if way.is_open() {
        return None;
    }
    let train = way.trains.first()?;
    let said = train.sent.error.as_ref();
    let said = said.map_or(String::new(), |it| format!("; the sender was told: {it}"));
    let place = lost_where(train).map_or(String::new(), |it| format!("; {it}"));
    let why = dropped(way);
    let evidence = format!(
        "nothing arrives {}: 0 of {} datagrams{place}{why}{said}",
        way.name(),
        train.sent.sent
    );
    let remedy = "find out who keeps them: whether the sender's device is up, and what the last \
                  place that carried them does with them";
    let device = format!("ip -s link show dev {}", way.device);
    let route = format!("ip route get {}", way.at);
    let found = Finding::bad("reach", evidence, remedy).shown_by(&way.from, [device]);
    let last = "the last place that carried them";
    Some(found.shown_by(last, [&route, RULES, "tcpdump -ni any udp"]))
}

/// Where a train lost most of what it lost, by what devices carried.
fn lost_where(train: &TrainSeen) -> Option<String> {
    if train.carried.is_empty() {
        return None;
    }
    let sent = u64::from(train.sent.sent);
    let end = ("the receiver".to_owned(), u64::from(train.taken.arrived));
    let mut before = ("the sender".to_owned(), sent);
    let mut worst = (0, String::new());
    for (name, packets) in train.carried.iter().cloned().chain([end]) {
        let less = before.1.min(sent).saturating_sub(packets);
        if less > worst.0 {
            let (from, had) = &before;
            let where_ = format!("{had} at {from}, {packets} at {name}");
            worst = (less, where_);
        }
        before = (name, packets);
    }
    // Others use the same devices where the places disagree.
    (worst.0 * 2 >= train.lost().max(1)).then_some(worst.1)
}

/// Where the kernel says that it dropped datagrams of one way, and why; and which devices counted
/// drops meanwhile.
fn dropped(way: &WaySeen) -> String {
    let Some(train) = way.trains.iter().find(|it| it.lost() > 0) else {
        return String::new();
    };
    let counted = train.device_drops.iter();
    let counted: Vec<String> = counted.map(|(at, by)| format!("{by} at {at}")).collect();
    let counted = match counted.is_empty() {
        true => String::new(),
        false => format!("; devices counted drops or errors: {}", counted.join(", ")),
    };
    let seen = match &train.dropped {
        None => String::new(),
        Some(Err(needs)) => format!("; why the kernel dropped them is not seen: {needs}"),
        Some(Ok(of)) if of.is_empty() => {
            "; none of them was seen to be dropped by the kernel".to_owned()
        }
        Some(Ok(of)) => {
            let say = |it: &DroppedThere| format!("{} at {} ({})", it.packets, it.at, it.reason);
            let each: Vec<String> = of.iter().map(say).collect();
            format!("; the kernel dropped {}", each.join(", "))
        }
    };
    seen + &counted
}

/// The longest packets each way.
fn sizes(ways: &[WaySeen; 2]) -> Vec<Finding> {
    let passes = ways.iter().filter(|way| way.is_open());
    let passes = passes.map(|way| way.size.largest).min();
    let passes = passes.unwrap_or_default();
    let hole = |way| Some(narrowed(black_hole(way)?, ways, passes));
    let holes: Vec<Finding> = ways.iter().filter_map(hole).collect();
    if !holes.is_empty() {
        return holes;
    }
    let open: Vec<&WaySeen> = ways.iter().filter(|way| way.is_open()).collect();
    let [there, back] = open[..] else {
        let lines = open.iter().map(|way| size_of(way, &way.name()));
        return vec![Finding::good("MTU", lines.collect::<String>())];
    };
    if there.size.largest == back.size.largest {
        return vec![Finding::good("MTU", size_of(there, "both ways"))];
    }
    let narrow = if there.size.largest < back.size.largest {
        there
    } else {
        back
    };
    let each = [there, back].map(|way| size_of(way, &way.name()));
    let evidence = format!("differs by direction: {}", each.join("; "));
    let remedy = match narrow.size.answer {
        None => format!(
            "`ip route get {}` in {} shows which route says so: change that, or have both ends \
             send no longer packets",
            narrow.at, narrow.from
        ),
        Some(answer) => format!(
            "raise the MTU of the link behind {}, or have both ends send no longer packets",
            answer.router
        ),
    };
    let found = Finding::note("MTU", evidence, remedy);
    vec![narrowed(found, ways, narrow.size.largest)]
}

/// The same, with the commands that make both ends send packets of at most so many bytes.
fn narrowed(found: Finding, ways: &[WaySeen; 2], most: u32) -> Finding {
    ways.iter().fold(found, |found, way| {
        let command = format!("ip link set dev {} mtu {most}", way.device);
        found.by(&way.from, command)
    })
}

/// The longest packet one way, called so, and what becomes of longer ones.
fn size_of(way: &WaySeen, name: &str) -> String {
    let size = &way.size;
    let beyond = match size.answer {
        Some(answer) => format!(
            "; {} answers to longer ones by ICMP, which takes the sender a round trip to learn",
            answer.router
        ),
        None if size.is_refused => "; the own stack refuses longer ones".to_owned(),
        None => String::new(),
    };
    format!("{} B {name}{beyond}", size.largest)
}

fn black_hole(way: &WaySeen) -> Option<Finding> {
    let size = &way.size;
    let swallowed = size.swallowed.filter(|_| way.is_open())?;
    let largest = size.largest;
    let stalls = match way.stream.acked < LEAST_STREAM {
        true => format!(
            "; a stream of TCP got {} bytes over, with {} segments sent again",
            way.stream.acked, way.stream.retransmits
        ),
        false => String::new(),
    };
    let evidence = format!(
        "{}, packets of {largest} B arrive, and those of {swallowed} B vanish: the own stack \
         sends up to {}, and nobody answers that it is too long{stalls}",
        way.name(),
        size.limit
    );
    let remedy = "let ICMP through from who drops them (IPv4 type 3 code 4, IPv6 type 2), or have \
                  both ends send no longer packets; for TCP alone it does to have who forwards \
                  them make segments smaller (nft add rule … tcp flags syn tcp option maxseg size \
                  set rt mtu), or sysctl -w net.ipv4.tcp_mtu_probing=1 at both ends";
    Some(Finding::bad("black hole", evidence, remedy))
}

fn loss(way: &WaySeen) -> Option<Finding> {
    let is_each = way.trains.iter().all(|train| train.lost() > 0);
    if !way.is_open() || !is_each {
        return None;
    }
    let each: Vec<String> = way
        .trains
        .iter()
        .map(|it| format!("{} of {}", it.lost(), it.sent.sent))
        .collect();
    let place = way.trains.iter().find_map(lost_where);
    let place = place.map_or(String::new(), |it| format!("; {it}"));
    let why = dropped(way);
    let evidence = format!(
        "{}, {} datagrams are lost{place}{why}",
        way.name(),
        each.join(", then ")
    );
    let remedy = "find out which rule, queue, buffer or card takes them where they end";
    let looks = [RULES, "ip -s -s link", QUEUES, "nstat -az"];
    let found = Finding::bad("loss", evidence, remedy).shown_by("the place where they end", looks);
    Some(found.with(Certainty::Sampled))
}

/// What is said of losses that are no finding.
fn few_lost(open: &[&WaySeen]) -> Finding {
    let trains = || open.iter().flat_map(|way| &way.trains);
    let sent: u32 = trains().map(|train| train.sent.sent).sum();
    let lost: u64 = trains().map(TrainSeen::lost).sum();
    // What is lost once only is no fault of the path.
    let evidence = match lost {
        0 => format!("none of {sent} datagrams"),
        _ => format!("{lost} of {sent} datagrams, and none when they were sent again"),
    };
    Finding::good("loss", evidence).with(Certainty::Sampled)
}

fn order(way: &WaySeen) -> Option<Finding> {
    let are_many = |train: &TrainSeen| {
        let taken = &train.taken;
        let share = f64::from(taken.overtaken) / f64::from(taken.arrived.max(1));
        taken.overtaken >= MANY_OVERTAKEN && share >= OVERTAKEN_SHARE
    };
    // A sender whose CPU changes overtakes itself, and does so once.
    if way.trains.is_empty() || !way.trains.iter().all(are_many) {
        return None;
    }
    let overtaken: u32 = way.trains.iter().map(|it| it.taken.overtaken).sum();
    let arrived: u32 = way.trains.iter().map(|it| it.taken.arrived).sum();
    let evidence = format!(
        "{}, {overtaken} of {arrived} datagrams of one flow arrive behind one that was sent later",
        way.name()
    );
    // A route with several ways is none of the reasons: it gives a flow one way (Linux 4.4),
    // whatever `fib_multipath_hash_policy` says.
    let remedy = "let a flow take one way: bonds by layer3+4 and not in turn (balance-rr), and no \
                  rules or queues that choose by packet";
    let looks = ["cat /proc/net/bonding/*", RULES, "ip rule", QUEUES];
    let found = Finding::bad("order", evidence, remedy).shown_by(EACH, looks);
    Some(found.with(Certainty::Sampled))
}

/// Most bytes of a segment that one way could have: by the packets that it takes, and by
/// those that the other end sends, for that is what it says that it takes.
fn possible_segment(way: &WaySeen, back: &WaySeen) -> u32 {
    let packet = way.size.largest.min(back.size.largest);
    packet.saturating_sub(way.headers + OPTION_BYTES)
}

fn small_segments((way, back): (&WaySeen, &WaySeen)) -> Option<Finding> {
    let (mss, possible) = (way.stream.send_mss, possible_segment(way, back));
    if way.stream.refused.is_some() || mss == 0 || mss + SPARE_BYTES >= possible {
        return None;
    }
    let evidence = format!(
        "{}, TCP sends segments of {mss} B, and packets of {} B would have room for {possible}",
        way.name(),
        way.size.largest
    );
    let remedy = "take away what makes them small: a rule (`maxseg`, TCPMSS) or a route (`advmss`)";
    let looks = [
        "nft -a list ruleset | grep maxseg",
        "iptables-save | grep TCPMSS",
        "ip route show table all | grep advmss",
    ];
    Some(Finding::bad("MSS", evidence, remedy).shown_by(EACH, looks))
}

fn segments([there, back]: &[WaySeen; 2]) -> String {
    let (one, other) = (there.stream.send_mss, back.stream.send_mss);
    match one == other {
        true => format!("segments of {one} B both ways, as the MTU allows"),
        false => format!("segments of {one} B and {other} B, as the MTU allows"),
    }
}

/// A stream that is not connected, or that hardly gets on, which nothing else explains.
fn stall(way: &WaySeen, seen: &PathSeen) -> Option<Finding> {
    let stream = &way.stream;
    if let Some(why) = &stream.refused {
        // Whatever else is wrong: what opens a connection is short, and sent again when lost.
        let name = way.name();
        let evidence = format!("{name}, no connection, though datagrams arrive: {why}");
        let found = Finding::bad("TCP", evidence, "find out who lets no TCP through");
        let found = found.shown_by(EACH, [RULES, "iptables-save"]);
        return Some(found.with(Certainty::Sampled));
    }
    // Segments that all are lost are sent again after 200 ms and more, so only a few times.
    let is_stuck = stream.acked == 0 || stream.retransmits >= MANY_RETRANSMITS;
    let is_slow = stream.acked < LEAST_STREAM && is_stuck;
    if !is_slow || explained(way).is_some() {
        return None;
    }
    let evidence = format!("{}, though datagrams arrive", brought(way));
    let found = match seen.trials {
        None => {
            let command = format!("{} --try-offloads", seen.command);
            let remedy = "try whether an offload is broken";
            Finding::bad("TCP", evidence, remedy).shown_by("this shell", [command])
        }
        Some(_) => {
            let remedy = "where the offload trial finds none that is broken, find out who drops \
                          its segments";
            Finding::bad("TCP", evidence, remedy).shown_by(EACH, [RULES, QUEUES])
        }
    };
    Some(found.with(Certainty::Sampled))
}

/// What else is found that a stream hardly gets on by.
fn explained(way: &WaySeen) -> Option<&'static str> {
    let is_swallowed = way.size.swallowed.is_some();
    let black_hole = is_swallowed.then_some("long packets vanish");
    black_hole.or_else(|| loss(way).map(|_| "datagrams are lost"))
}

/// What a stream came to.
fn brought(way: &WaySeen) -> String {
    let stream = &way.stream;
    format!(
        "{}, a stream gets {} bytes over in {} ms, and sent {} segments again",
        way.name(),
        stream.acked,
        stream.length_ns / 1_000_000,
        stream.retransmits
    )
}

/// What is said of streams that are no finding of their own.
fn flow(ways: &[WaySeen; 2]) -> Finding {
    let slow = ways.iter().filter(|way| way.stream.acked < LEAST_STREAM);
    let say = |way: &WaySeen| match explained(way) {
        Some(why) => format!("{}, where {why}", brought(way)),
        None => format!("{}, as over a slow link", brought(way)),
    };
    let each: Vec<String> = slow.map(say).collect();
    match each.is_empty() {
        true => Finding::good("TCP", "streams flow both ways").with(Certainty::Sampled),
        false => {
            let evidence = format!("not known: {}", each.join("; "));
            Finding::good("TCP", evidence).with(Certainty::Unknown)
        }
    }
}

#[cfg(test)]
mod tests;

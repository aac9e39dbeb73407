//! The state of namespaces as `ip -j` and `bridge -j` show it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use plumbline_harness::Path as _;
use plumbline_lab::{Place, StandingNetwork, Topology};
use serde_json::Value;

/// What is asked of each namespace. Neighbours that the kernel learned age on
/// their own; the ones that were set by hand must be gone.
const QUESTIONS: &[&[&str]] = &[
    &["ip", "-j", "-d", "link"],
    &["ip", "-j", "addr"],
    &["ip", "-j", "-4", "route", "show", "table", "all"],
    &["ip", "-j", "-6", "route", "show", "table", "all"],
    &["ip", "-j", "-4", "rule"],
    &["ip", "-j", "-6", "rule"],
    &["ip", "-j", "neigh", "show", "nud", "permanent"],
    &["ip", "-j", "neigh", "show", "proxy"],
    &["bridge", "-j", "fdb"],
    &["tc", "-j", "qdisc"],
];

pub(crate) type State = BTreeMap<String, Value>;

/// The state of all namespaces; `None` where `ip` is not installed.
pub(crate) fn state(topology: &Topology) -> Option<State> {
    let pods = topology.pods.iter().map(|pod| &pod.place);
    let places = topology.nodes.iter().chain(pods).chain(&topology.router);
    let mut state = State::new();
    for place in places {
        for question in QUESTIONS {
            // A kernel without IPv6 refuses the question.
            if question.contains(&"-6") && !Path::new("/proc/sys/net/ipv6").exists() {
                continue;
            }
            let key = format!("{}: {}", place.name, question.join(" "));
            state.insert(key, ask(place, question)?);
        }
    }
    Some(state)
}

/// The MTU in bytes that the client's route to the server has of its own; the
/// largest number where it has none, or `ip` is not installed.
pub(crate) fn route_mtu(standing: &StandingNetwork) -> u32 {
    let server = standing.server().address().to_string();
    let question = ["ip", "-j", "route", "get", &server];
    let client = standing.client_place();
    let answer = ask(client, &question).unwrap_or_default();
    let mtu = answer[0]["metrics"][0]["mtu"].as_u64();
    mtu.map_or(u32::MAX, |mtu| mtu as u32)
}

pub(crate) fn ask(place: &Place, question: &[&str]) -> Option<Value> {
    let output = place
        .namespace
        .run(|| Command::new(question[0]).args(&question[1..]).output())
        .expect("entered");
    let output = match output {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => panic!("{question:?}: {error}"),
    };
    assert!(output.status.success(), "{question:?}: {output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    // `ip` prints nothing at all for some empty lists.
    let text = if text.trim().is_empty() { "[]" } else { &text };
    let mut answer = serde_json::from_str(text).expect("JSON");
    forget_the_past(&mut answer);
    Some(answer)
}

/// A device that is down still shows what it had when it was up last: its queue,
/// and that IPv6 has met it. Nothing can take that back, and a device that the
/// kernel made, as `tunl0`, cannot be deleted.
fn forget_the_past(answer: &mut Value) {
    if let Some(items) = answer.as_array_mut() {
        // What `tc` says of a device without a queue, once it has been up.
        items.retain(|item| item["kind"] != "noqueue");
    }
    for item in answer.as_array_mut().into_iter().flatten() {
        let Some(link) = item.as_object_mut() else {
            continue;
        };
        let is_up = |flags: &Vec<Value>| flags.iter().any(|flag| flag == "UP");
        let up = link
            .get("flags")
            .and_then(Value::as_array)
            .is_none_or(is_up);
        if !up {
            link.remove("qdisc");
            link.remove("inet6_addr_gen_mode");
        }
    }
}

/// Names the first question that is answered differently.
pub(crate) fn assert_same(before: &State, after: &State) {
    for (question, answer) in before {
        assert_eq!(answer, &after[question], "{question} differs");
    }
}

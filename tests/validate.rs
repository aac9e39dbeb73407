//! `plumbline validate`: comparisons, and nothing left behind.

use std::time::Duration;

use nix::sys::signal::Signal;

use crate::left::family;
use crate::world::{Running, eventually, json, lab, output, stderr};

#[test]
fn the_bare_loop_and_the_engine_agree_roughly() {
    let Some(_alone) = lab("the bare loop and the engine agree") else {
        return;
    };
    let arguments = [
        "validate",
        "--only",
        "floor",
        "--pairs",
        "1",
        "--seconds",
        "1",
        "--json",
    ];
    let json = json(&arguments);
    let figure = &json["figures"][0];
    assert_eq!(figure["against"], "floor");
    let (ours, theirs) = (
        figure["ours"].as_f64().unwrap(),
        figure["theirs"].as_f64().unwrap(),
    );
    // One pair on a busy machine says little; a wrong unit or a wrong parse
    // would be off by a factor of 1,000, half a round trip by 2.
    assert!(ours > 1e3 && theirs > 1e3, "{json}");
    assert!((0.2..5.0).contains(&(ours / theirs)), "{json}");
    assert!(figure["interval"].is_null(), "one pair has no interval");
    assert_eq!(json["missing"].as_array().unwrap().len(), 0);
}

#[test]
fn a_kill_leaves_no_program_behind() {
    let Some(_alone) = lab("a kill of validate leaves nothing") else {
        return;
    };
    let mut validate = Running::start(&["validate", "--only", "floor", "--seconds", "30"]);
    eventually("both ends run", Duration::from_secs(5), || {
        family(validate.pid()).len() >= 3
    });
    let all = family(validate.pid());
    validate.signal(Signal::SIGKILL);
    validate.wait(Duration::from_secs(1));
    eventually("all have ended", Duration::from_secs(2), || {
        all.iter().all(|pid| has_ended(*pid))
    });
}

/// Gone, or dead and not yet fetched by whoever inherited it.
fn has_ended(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return true;
    };
    stat[stat.rfind(')').unwrap()..].starts_with(") Z")
}

#[test]
fn an_unknown_comparison_is_bad_usage() {
    let output = output(&["validate", "--only", "wrkk"]);
    assert_eq!(output.status.code(), Some(64));
    assert!(stderr(&output).contains("there are wrk, wrk-uring, "));
}

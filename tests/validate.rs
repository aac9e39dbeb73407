//! `plumbline validate`: comparisons, and nothing left behind.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;

use nix::sys::signal::Signal;

use crate::left::family;
use crate::world::{PATIENCE, Running, eventually, json, lab, output, plumbline, stderr, stdout};

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
    // One pair on a busy machine says little, and two that cannot run say nothing; a wrong
    // unit or a wrong parse would be off by a factor of 1,000 whenever it is tried.
    let mut told = Vec::new();
    let agreed = (0..5).any(|_| {
        told.push(json(&arguments));
        let json = told.last().unwrap();
        let figure = &json["figures"][0];
        let both = (figure["ours"].as_f64(), figure["theirs"].as_f64());
        let (Some(ours), Some(theirs)) = both else {
            return false;
        };
        assert_eq!(figure["against"], "floor");
        assert!(figure["interval"].is_null(), "one pair has no interval");
        assert_eq!(json["missing"].as_array().unwrap().len(), 0, "{json}");
        ours > 1e3 && theirs > 1e3 && (0.2..5.0).contains(&(ours / theirs))
    });
    assert!(agreed, "{told:?}");
}

#[test]
fn a_kill_leaves_no_program_behind() {
    let Some(_alone) = lab("a kill of validate leaves nothing") else {
        return;
    };
    let mut validate = Running::start(&["validate", "--only", "floor", "--seconds", "30"]);
    eventually("both ends run", PATIENCE, || {
        family(validate.pid()).len() >= 3
    });
    let all = family(validate.pid());
    validate.signal(Signal::SIGKILL);
    assert_eq!(validate.wait(PATIENCE), None);
    eventually("all have ended", PATIENCE, || {
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

/// Runs one comparison beside peers that are scripts of ours.
fn beside(only: &str, peers: &[(&str, String)], more: &[&str]) -> Output {
    let programs = tempfile::tempdir().unwrap();
    for (name, script) in peers {
        plant(programs.path(), name, script);
    }
    let path = std::env::var("PATH").unwrap();
    plumbline(&["validate", "--only", only, "--pairs", "1", "--seconds", "1"])
        .args(more)
        .env("PATH", format!("{}:{path}", programs.path().display()))
        .output()
        .expect("the program starts")
}

fn plant(directory: &Path, name: &str, script: &str) {
    let path = directory.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Our own program, as a shell finds it.
fn ours() -> String {
    let ours = plumbline(&[]).get_program().to_owned();
    format!("'{}'", ours.display())
}

/// An oha whose key of the 99th percentile has another name, as far as it is read. The
/// nginx that both ask is our own responder, at the address of nginx's configuration.
#[test]
fn a_renamed_key_of_a_peer_is_an_error_and_no_lack_of_samples() {
    let Some(_alone) = lab("a renamed key of a peer is an error") else {
        return;
    };
    let nginx = format!(
        "address=$(sed -n 's/.*listen \\([^ ]*\\) .*/\\1/p' \"$6\")\n\
         exec {} serve \"$address\" --workload http --response-size 100\n",
        ours()
    );
    let says = r#"{"statusCodeDistribution": {"200": 500000},
        "latencyPercentiles": {"p50": 1.0, "p99.0": 1.0, "p99.9": 1.0}}"#;
    let peers = [("nginx", nginx), ("oha", printing(says))];
    let output = beside("oha", &peers, &["--json"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let said = "`oha` gave no /latencyPercentiles/p99:";
    assert!(stderr(&output).contains(said), "{}", stderr(&output));
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(json["figures"].as_array().unwrap().len(), 0, "{json}");
    assert_eq!(json["failed"][0]["comparison"], "oha");
    let error = json["failed"][0]["error"].as_str().unwrap();
    assert!(error.starts_with(said), "{error}");
}

fn printing(text: &str) -> String {
    format!("cat <<'E'\n{text}\nE\n")
}

/// An iperf3 whose client sends nothing, ends its server as an iperf3's ends after one
/// client, and says that it sent a byte at so many bits a second.
fn iperf3(bits: f64) -> String {
    let json =
        format!(r#"{{"end": {{"sum_received": {{"bytes": 1, "bits_per_second": {bits:e}}}}}}}"#);
    format!(
        "if [ \"$1\" = -s ]; then\n\
         echo $$ >\"$0.pid\"; exec {} serve 0.0.0.0:\"$4\"\n\
         fi\n\
         kill -INT \"$(cat \"$0.pid\")\"\n{}",
        ours(),
        printing(&json)
    )
}

/// In bulk every run has a figure; a percentile may lack samples where the machine is
/// slower than the rate. An iperf3's CPU for its one byte is more than ours can be.
#[test]
fn a_missed_reach_is_exit_code_1_where_it_is_asked_for() {
    let Some(_alone) = lab("a missed reach is exit code 1") else {
        return;
    };
    let run = |bits, more: &str| beside("stream", &[("iperf3", iperf3(bits))], &[more]);
    let lenient = run(1e18, "--figures");
    assert_eq!(lenient.status.code(), Some(0), "{}", stderr(&lenient));
    assert!(stdout(&lenient).contains("  NO"), "{}", stdout(&lenient));
    let strict = run(1e18, "--strict");
    assert_eq!(strict.status.code(), Some(1), "{}", stderr(&strict));
    let said = "missed: TCP stream: rate (stream): not ≥ 1 ×";
    assert!(stderr(&strict).contains(said), "{}", stderr(&strict));
    // What reaches it is no reason: the same, with an iperf3 that is slow.
    let met = run(1.0, "--strict");
    assert_eq!(met.status.code(), Some(0), "{}", stderr(&met));
}

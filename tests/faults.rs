//! What happens when things go wrong in the middle.

mod clock;
mod cut;
mod disk;
mod planted;
mod tracking;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plumbline_lab::FAULTS;

use crate::left::{family, nothing_left, own_namespaces};
use crate::observed::whole_lines;
use crate::world::{
    self, PATIENCE, Running, eventually, often_in_time, output, plumbline, run_directory, runs_in,
    stderr, stdout, trials,
};

/// A run that would take minutes.
fn long(out: &std::path::Path) -> Vec<&str> {
    vec![
        "run",
        "--out",
        out.to_str().unwrap(),
        "--network",
        "vxlan,routed",
        "--workload",
        "rr",
        "--rate",
        "2000",
        "--blocks",
        "100",
        "--duration",
        "100ms",
        "--set",
        "design.warm_up=20ms",
    ]
}

/// Waits until a run has some finished trials; gives its directory.
fn under_way(out: &std::path::Path, finished: usize) -> std::path::PathBuf {
    eventually("the run has finished trials", PATIENCE, || {
        runs_in(out)
            .first()
            .is_some_and(|run| trials(run) >= finished)
    });
    run_directory(out)
}

#[test]
fn ctrl_c_stops_within_a_second_and_keeps_what_is_finished() {
    stops(
        "ctrl_c_stops_within_a_second_and_keeps_what_is_finished",
        Signal::SIGINT,
    );
}

/// As when the `ssh` session that it was typed in is cut.
#[test]
fn a_lost_terminal_stops_the_run_and_keeps_what_is_finished() {
    stops(
        "a_lost_terminal_stops_the_run_and_keeps_what_is_finished",
        Signal::SIGHUP,
    );
}

/// Most of ten tries have to be soon.
fn stops(test: &str, signal: Signal) {
    let Some(_alone) = world::lab(test) else {
        return;
    };
    let is_soon = |took: &Duration| *took < Duration::from_secs(1);
    let took = often_in_time(6, || stopped(signal), is_soon);
    assert!(is_soon(&took), "{took:?}");
}

/// Stops a run that is under way, and sees what it keeps and that nothing of it is left.
/// Gives how long that took it.
fn stopped(signal: Signal) -> Duration {
    let out = tempfile::tempdir().unwrap();
    let mut run = Running::start(&long(out.path()));
    let directory = under_way(out.path(), 4);
    let pids = family(run.pid());
    let namespaces = own_namespaces(&pids);
    assert!(namespaces.len() >= 4, "{namespaces:?}");
    let clock = Instant::now();
    run.signal(signal);
    let code = run.wait(PATIENCE);
    let took = clock.elapsed();
    assert_eq!(code, Some(2));
    nothing_left(&pids, &namespaces);
    let report = stdout(&output(&["report", directory.to_str().unwrap()]));
    assert!(report.starts_with("Cut off: "), "{report}");
    assert!(directory.join("report.html").exists());
    took
}

#[test]
fn a_killed_agent_costs_its_trial_only() {
    let Some(_alone) = world::lab("a_killed_agent_costs_its_trial_only") else {
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let run = Running::start(&long(out.path()));
    let directory = under_way(out.path(), 2);
    let parent = run.pid();
    let is_kept_as_failed = || {
        let text = fs::read_to_string(directory.join("trials.jsonl")).unwrap();
        text.contains("\"status\":\"failed\"")
    };
    let (mut kills, mut seen) = (0, Vec::new());
    // One that had nothing more to do costs no trial.
    while kills < 3 || !is_kept_as_failed() {
        assert!(kills < 30, "a killed agent's trial is kept as failed");
        let mut agent = None;
        eventually("an agent runs", PATIENCE, || {
            agent = family(parent).into_iter().find(|&pid| pid != parent);
            agent.is_some()
        });
        // It may have ended by itself meanwhile; the next one will do.
        let _ = kill(Pid::from_raw(agent.unwrap() as i32), Signal::SIGKILL);
        let (known, before) = (seen.len(), trials(&directory));
        eventually("the run goes on", PATIENCE, || {
            seen = whole_lines(&directory);
            let is_seen = seen.last().is_some_and(|it| it["observation"].is_object());
            is_seen && seen.len() >= before + 2
        });
        // Those that took turns have failed together.
        let failed = seen[known..]
            .iter()
            .filter(|it| it["status"]["status"] == "failed");
        let failed: BTreeSet<_> = failed
            .map(|it| [it["block"].as_u64(), it["attempt"].as_u64()])
            .collect();
        assert!(failed.len() <= 1, "by one kill: {failed:?}");
        kills += 1;
    }
}

#[test]
fn a_second_controller_of_one_run_is_refused() {
    let Some(_alone) = world::lab("a_second_controller_of_one_run_is_refused") else {
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let _run = Running::start(&long(out.path()));
    let directory = under_way(out.path(), 1);
    let second = output(&["run", "--resume", directory.to_str().unwrap()]);
    let said = stderr(&second);
    assert_eq!(second.status.code(), Some(2), "{said}");
    assert!(said.contains("is in use by another"), "{said}");
}

#[test]
fn a_directory_that_cannot_be_written_is_2() {
    let Some(_alone) = world::lab("a_directory_that_cannot_be_written_is_2") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let below_a_file = file.join("out");
    let result = output(&long(&below_a_file));
    assert_eq!(result.status.code(), Some(2), "{}", stderr(&result));
    let named = below_a_file.to_str().unwrap();
    assert!(stderr(&result).contains(named), "{}", stderr(&result));
}

#[test]
fn without_namespaces_the_error_says_what_to_do() {
    let Some(_alone) = world::lab("without_namespaces_the_error_says_what_to_do") else {
        return;
    };
    if nix::unistd::geteuid().is_root() {
        return world::skip(
            "without_namespaces_the_error_says_what_to_do",
            "root may always make namespaces",
        );
    }
    // In a user namespace whose limit is 0 nobody may make another.
    let program = plumbline(&[]).get_program().to_owned();
    let script = format!(
        "echo 0 > /proc/sys/user/max_user_namespaces; echo 0 > /proc/sys/user/max_net_namespaces; exec {} list networks",
        program.to_string_lossy()
    );
    let result = std::process::Command::new("unshare")
        .args(["-Ur", "sh", "-c", &script])
        .output();
    let Ok(result) = result else {
        return world::skip(
            "without_namespaces_the_error_says_what_to_do",
            "`unshare` is not installed",
        );
    };
    assert_eq!(result.status.code(), Some(2), "{}", stderr(&result));
    assert!(
        stderr(&result).contains("namespaces"),
        "{}",
        stderr(&result)
    );
}

/// Some systems let a user make a user namespace and refuse what makes it useful.
#[test]
fn namespaces_without_their_maps_are_told_before_a_run() {
    let test = "namespaces_without_their_maps_are_told_before_a_run";
    let Some(_alone) = world::lab(test) else {
        return;
    };
    let program = plumbline(&[]).get_program().to_owned();
    let script = format!(
        "mount -t tmpfs none /proc && exec setpriv --bounding-set=-all --inh-caps=-all {} doctor --json",
        program.to_string_lossy()
    );
    let result = std::process::Command::new("unshare")
        .args(["-Ur", "--mount", "sh", "-c", &script])
        .output();
    let Ok(result) = result else {
        return world::skip(test, "`unshare` is not installed");
    };
    assert!(result.status.success(), "{}", stderr(&result));
    let findings: serde_json::Value = serde_json::from_slice(&result.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", stderr(&result)));
    let mut findings = findings.as_array().unwrap().iter();
    let namespaces = findings.find(|it| it["check"] == "namespaces").unwrap();
    assert_eq!(namespaces["level"], "bad", "{namespaces}");
}

/// Root of a user namespace is nobody to eBPF, whoever runs the test.
#[test]
fn without_root_ebpf_is_refused_with_the_way_out() {
    let test = "without_root_ebpf_is_refused_with_the_way_out";
    let Some(_alone) = world::lab(test) else {
        return;
    };
    let program = plumbline(&[]).get_program().to_owned();
    let inside = |arguments: &[&str]| {
        let mut command = std::process::Command::new("unshare");
        command.arg("-Ur").arg(&program).args(arguments).output()
    };
    let Ok(listed) = inside(&["list", "networks", "--json"]) else {
        return world::skip(test, "`unshare` is not installed");
    };
    assert!(listed.status.success(), "{}", stderr(&listed));
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let listed = listed.as_array().unwrap();
    let cilium = listed.iter().find(|row| row["name"] == "cilium").unwrap();
    assert_eq!(cilium["available"], false, "{cilium}");
    let needs = cilium["needs"].as_str().unwrap();
    for word in ["CAP_BPF", "root", "--kernel uml"] {
        assert!(needs.contains(word), "{word} is not in: {needs}");
    }

    let run = inside(&["run", "--network", "host,cilium"]).unwrap();
    assert_eq!(run.status.code(), Some(2), "{}", stderr(&run));
    assert!(stderr(&run).contains(needs), "{}", stderr(&run));
}

#[test]
fn a_port_that_is_taken_is_2() {
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap().to_string();
    let result = output(&["serve", &address]);
    assert_eq!(result.status.code(), Some(2), "{}", stderr(&result));
    let port = address.rsplit(':').next().unwrap();
    assert!(
        stderr(&result).contains(port) && stderr(&result).contains("taken"),
        "{}",
        stderr(&result)
    );
}

/// A lab that stands, and what it said.
fn standing(arguments: &[&str]) -> (Running, Vec<String>) {
    let mut lab = Running::start(&[&["lab", "up", "host-gw"], arguments].concat());
    let lines = BufReader::new(lab.0.stdout.take().unwrap()).lines();
    let lines = lines.map(|line| line.expect("lines of text"));
    let said = lines.take_while(|line| !line.contains("Ctrl-C")).collect();
    (lab, said)
}

/// The commands that enter the namespaces of a lab that said this.
fn entrances(said: &[String]) -> Vec<&str> {
    let commands = said
        .iter()
        .filter_map(|line| line.find("nsenter").map(|at| &line[at..]));
    commands.collect()
}

/// The rules in a namespace that this command enters.
fn rules(enter: &str) -> String {
    let command = format!("{enter} /usr/sbin/nft list ruleset");
    let mut shell = std::process::Command::new("sh");
    let looked = shell.args(["-c", &command]).output().unwrap();
    stdout(&looked) + &stderr(&looked)
}

#[test]
fn a_standing_lab_can_be_entered_and_ends_with_ctrl_c() {
    let Some(_alone) = world::lab("a_standing_lab_can_be_entered_and_ends_with_ctrl_c") else {
        return;
    };
    let (mut lab, said) = standing(&[]);
    let enter = entrances(&said);
    assert!(enter.len() >= 4, "two nodes and two pods: {enter:?}");
    let looked = std::process::Command::new("sh")
        .args(["-c", &format!("{} cat /proc/net/dev", enter[0])])
        .output();
    match looked {
        Ok(looked) if looked.status.code() != Some(127) => {
            let devices = stdout(&looked);
            assert!(
                devices.contains("eth0"),
                "{}: {devices}{}",
                enter[0],
                stderr(&looked)
            );
        }
        _ => world::skip(
            "a_standing_lab_can_be_entered_and_ends_with_ctrl_c",
            "`nsenter` is not installed",
        ),
    }
    let pids = family(lab.pid());
    let namespaces = own_namespaces(&pids);
    lab.signal(Signal::SIGINT);
    assert_eq!(lab.wait(PATIENCE), Some(0));
    nothing_left(&pids, &namespaces);
}

#[test]
fn a_standing_lab_shows_the_rules_that_are_laid_on_it() {
    const TEST: &str = "a_standing_lab_shows_the_rules_that_are_laid_on_it";
    let Some(_alone) = world::lab(TEST) else {
        return;
    };
    if !Path::new("/usr/sbin/nft").exists() {
        return world::skip(TEST, "`nft` is not installed");
    }
    let wanted = ["--services", "5", "--proxy", "nftables", "--policies", "3"];
    let (mut lab, said) = standing(&wanted);
    let enter = entrances(&said);
    let shows = |enter: &str, part: &str| {
        let rules = rules(enter);
        assert!(rules.contains(part), "{enter}: {rules}");
    };
    shows(enter[0], "service-00000004");
    shows(enter[1], "table ip plumbline");
    lab.signal(Signal::SIGINT);
    assert_eq!(lab.wait(PATIENCE), Some(0));
}

#[test]
fn a_standing_lab_has_the_fault_that_was_asked_for() {
    const TEST: &str = "a_standing_lab_has_the_fault_that_was_asked_for";
    let Some(_alone) = world::lab(TEST) else {
        return;
    };
    if !Path::new("/usr/sbin/nft").exists() {
        return world::skip(TEST, "`nft` is not installed");
    }
    let fault = FAULTS.iter().find(|it| it.name == "mtu-black-hole");
    let planted = format!("Planted: {}.", fault.expect("there is one").about);
    let (mut lab, said) = standing(&["--fault", "mtu-black-hole"]);
    assert!(said.contains(&planted), "{said:?}");
    // The node that routes is silent about packets that are too long, and nobody else is.
    let rules = entrances(&said).into_iter().map(rules);
    let silent = rules.filter(|it| it.contains("table ip plumbline-fault"));
    let silent: Vec<String> = silent.collect();
    assert_eq!(silent.len(), 1, "{silent:?} of {said:?}");
    assert!(silent[0].contains("frag-needed drop"), "{silent:?}");
    lab.signal(Signal::SIGINT);
    assert_eq!(lab.wait(PATIENCE), Some(0));
}

//! Bad usage, bad files, and what does not touch the machine.

use std::fs;
use std::path::Path;

use crate::inventory;
use crate::world::{self, output, plumbline, stderr, stdout};

/// Refused with this code, before anything is written: neither where it was typed nor among
/// temporary files.
#[track_caller]
fn refused(arguments: &[&str], code: i32, says: &[&str]) {
    let place = tempfile::tempdir().unwrap();
    let output = plumbline(arguments)
        .current_dir(place.path())
        .env("TMPDIR", place.path())
        .output()
        .expect("the program starts");
    let left = inventory::names(place.path());
    assert!(left.is_empty(), "{arguments:?} leaves {left:?}");
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
    for part in says {
        assert!(
            text.contains(part),
            "{arguments:?} should say {part:?}: {text}"
        );
    }
}

/// Runs an experiment file with this text.
#[track_caller]
fn refused_file(text: &str, says: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("bad.toml");
    fs::write(&file, text).unwrap();
    let out = dir.path().join("out");
    refused(
        &[
            "run",
            file.to_str().unwrap(),
            "--out",
            out.to_str().unwrap(),
        ],
        64,
        says,
    );
    assert!(!out.exists(), "a refused experiment leaves nothing");
}

#[test]
fn bad_usage_is_64() {
    refused(&["frobnicate"], 64, &["frobnicate"]);
    refused(&["run", "--bogus"], 64, &["--bogus"]);
    refused(
        &["run", "no-such-experiment"],
        64,
        &["no-such-experiment", "list experiments"],
    );
    refused(&["compare", "x", "--limit", "p50"], 64, &["METRIC=SHARE"]);
    refused(&["compare", "x", "--limit", "speed=1%"], 64, &["p50"]);
    refused(&["load", "https://127.0.0.1/"], 64, &["https"]);
    refused(&["load", "127.0.0.1"], 64, &["HOST:PORT"]);
    refused(&["load", "8.8.8.8:80"], 64, &["--i-own-this"]);
    for limit in ["p99", "p99<1", "mean<1ms", "loss<0"] {
        refused(
            &["load", "127.0.0.1:1", "--find-max", limit],
            64,
            &[limit, "p99<1ms"],
        );
    }
    let find_max = |more: &[&str], says: &str| {
        let all = [&["load", "127.0.0.1:1", "--find-max", "loss=0"], more].concat();
        refused(&all, 64, &[says]);
    };
    find_max(&["--rate", "5"], "--rate");
    find_max(&["--workload", "stream"], "no rate");
    find_max(&["--workload", "datagram"], "rr --udp");
    find_max(&["--trial", "1ms"], "100ms");
    find_max(&["--up-to", "50"], "50/s");
    find_max(&["--width", "0"], "width");
    refused(
        &["load", "127.0.0.1:1", "--trial", "2s"],
        64,
        &["--find-max"],
    );
    refused(&["lab", "up", "vxlan", "--family", "5"], 64, &["family"]);
    refused(&["doctor", "--fault", "loss"], 64, &["--path"]);
    refused(&["doctor", "--cni-bin", "/opt/cni"], 64, &["--path"]);
    for of_runs in ["--awake", "--tune"] {
        refused(&["doctor", of_runs], 64, &[of_runs, "of runs"]);
        let path = ["doctor", "--path", "vxlan", of_runs];
        refused(&path, 64, &[of_runs, "of runs"]);
    }
    refused(&["doctor", "--path"], 64, &["--path vxlan"]);
    refused(&["doctor", "--path", "a", "b"], 64, &["--path vxlan"]);
    refused(&["doctor", "--target", "hosts"], 64, &["--path"]);
    let on_hosts = ["--target", "hosts", "--host", "a", "--host", "b"];
    let faulty = [&["doctor", "--path", "--fault", "loss"], &on_hosts[..]].concat();
    refused(&faulty, 64, &["in a lab only"]);
    refused(
        &["doctor", "--path", "vxlan", "--services", "9"],
        64,
        &["services"],
    );
}

#[test]
fn more_services_or_policies_than_there_can_be_are_refused() {
    let refused = |flags: &str, code, says: &str| {
        let out = tempfile::tempdir().unwrap();
        let out = out.path().to_str().unwrap();
        let command = ["run", "--network", "vxlan", "--out", out];
        let flags = flags.split(' ').collect::<Vec<_>>();
        refused(&[&command[..], &flags].concat(), code, &[says]);
    };
    refused("--services 100001", 64, "from 0 to 100000");
    refused("--services 9 --endpoints 1001", 64, "from 1 to 1000");
    let too_many = "100000 services of 1000 endpoints each are more than 500000";
    refused("--services 100000 --endpoints 1000", 64, too_many);
    refused("--policies 10001", 64, "from 0 to 10000");
    refused("--policies 9 --members 10001", 64, "from 1 to 10000");
    if let Some(_alone) = world::lab("more policies than addresses") {
        let flags = "--policies 10000 --members 10";
        refused(flags, 2, "100000 peers, and the lab 49152 addresses");
    }
}

#[test]
fn a_target_without_its_hosts_asks_for_them() {
    let hosts = |more: &[&str], says: &[&str]| {
        refused(&[&["run", "--target", "hosts"], more].concat(), 64, says);
    };
    hosts(&[], &["--host user@a --host user@b", "--pair"]);
    hosts(&["--host", "a"], &["it takes two"]);
    hosts(&["--host", "a", "--host", "--port"], &["--port"]);
    hosts(&["--pair", "vm=a"], &["NAME=HOST,HOST"]);
    hosts(
        &["--pair", "vm=a,b", "--pair", "vm=c,d"],
        &["two networks `vm`"],
    );
    hosts(
        &["--host", "a", "--host", "b", "--address", "10.0.0.0/40"],
        &["10.0.0.0/40", "a network such as"],
    );
    hosts(
        &["--pair", "vm=a,b"],
        &["no network `host`", "vm", "--baseline"],
    );
    refused(&["run", "--host", "a"], 64, &["--target hosts"]);
    // What only the lab can do is not left out in silence elsewhere.
    let with = |flags: &[&'static str], part| {
        let mut arguments = vec!["run", "--target", "hosts", "--host", "a", "--host", "b"];
        arguments.extend(flags);
        refused(&arguments, 64, &[part]);
    };
    let workload = "[[workload]]\nkind = \"rr\"\nrate = 100\n";
    let shaped = format!("name = \"x\"\nlink.rate = \"1Gbit\"\n{workload}");
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), shaped).unwrap();
    let mut arguments = vec!["run", file.path().to_str().unwrap()];
    arguments.extend(["--target", "hosts", "--host", "a", "--host", "b"]);
    refused(&arguments, 64, &["[link]", "--target lab"]);
    with(&["--kernel", "uml"], "--target lab");
    with(&["--cni-bin", "/plugins"], "--cni-bin: say --target lab");
    with(&["--image", "i"], "--image: say --target kubernetes");
    // What only clusters have, and what only several of them have.
    refused(
        &["run", "--path", "pod"],
        64,
        &["`path`", "--target kubernetes"],
    );
    refused(&["run", "--across-environments"], 64, &["several clusters"]);
    refused(
        &["run", "cni-comparison"],
        64,
        &["flannel-vxlan", "--provision 'COMMAND'", "--context"],
    );
    let cluster = ["run", "--target", "kubernetes"];
    let both = ["--provision", "up", "--context", "a"];
    refused(
        &[&cluster[..], &both].concat(),
        64,
        &["--context", "--provision"],
    );
    let down = ["--unprovision", "down"];
    refused(&[&cluster[..], &down].concat(), 64, &["--provision"]);
    let unnamed = ["--provision", "true", "--unprovision", "true"];
    refused(&[&cluster[..], &unnamed].concat(), 64, &["which networks?"]);
    // What an experiment asks for is its own, and the flags are named.
    refused(
        &["run", "centurylink-2016"],
        64,
        &["--pair bare-metal=HOST,HOST --pair vm=HOST,HOST", "ssh"],
    );
}

/// They may come from somebody else, so nothing of them is run unseen.
#[test]
fn commands_of_a_file_or_of_a_run_that_was_handed_over_are_shown_first() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    let up = format!("touch {}", at("touched").display());
    let survive = format!("name = \"x\"\n[[workload]]\nkind = \"survive\"\nduring = \"{up}\"\n");
    fs::write(at("survive.toml"), survive).unwrap();
    let text = format!(
        "name = \"x\"\n[target.kubernetes]\nup = \"{up}\"\n[[workload]]\nkind = \"rr\"\nrate = 100\n"
    );
    fs::write(at("x.toml"), &text).unwrap();
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/report/tests/older/tour");
    let run = fs::read(recorded.join("run.json")).unwrap();
    let mut run: serde_json::Value = serde_json::from_slice(&run).unwrap();
    run["experiment_text"] = text.into();
    fs::write(at("run.json"), run.to_string()).unwrap();
    fs::copy(recorded.join("trials.jsonl"), at("trials.jsonl")).unwrap();
    for arguments in [
        &["run", at("x.toml").to_str().unwrap()][..],
        &["run", at("survive.toml").to_str().unwrap()],
        &["run", "--resume", scratch.path().to_str().unwrap()],
    ] {
        refused(arguments, 64, &[&up, "--allow-commands"]);
        assert!(!at("touched").exists());
    }
}

#[test]
fn help_and_version_are_0() {
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["run", "--help"],
        &["help", "load"],
    ] {
        assert!(output(arguments).status.success(), "{arguments:?}");
    }
}

#[test]
fn the_help_of_image_says_how_to_load_it() {
    let output = output(&["image", "--help"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let help = stdout(&output);
    assert!(help.contains("kind load image-archive FILE"), "{help}");
}

#[test]
fn a_bad_experiment_shows_its_line_and_the_remedy() {
    refused_file("name = \"x\"\nbloks = 3\n", &["bad.toml:2", "bloks"]);
    let workload = "name = \"x\"\n[factors]\nnetwork = [\"host\", \"vxlan\"]\n[[workload]]\n";
    refused_file(
        &format!("{workload}kind = \"rr\"\nrate = -5\n"),
        &["bad.toml:6", "rate"],
    );
    refused_file(
        &format!("{workload}kind = \"stream\"\nrate = 5\n"),
        &["bad.toml:6", "rate"],
    );
    refused_file(
        &format!("{workload}kind = \"http\"\nprotocol = \"udp\"\nrate = 5\n"),
        &["bad.toml:6", "udp"],
    );
    refused_file(
        &format!("{workload}kind = \"rr\"\nrate = 5\nconections = 5\n"),
        &["bad.toml:7", "connections"],
    );
    refused_file("name = [", &["bad.toml:1"]);
}

#[test]
fn a_flag_that_cannot_be_meant_is_64() {
    refused(&["run", "--blocks", "0"], 64, &["--blocks"]);
    refused(&["run", "--rate", "fast"], 64, &["--rate"]);
    refused(&["run", "--workload", "ping"], 64, &["ping"]);
    refused(&["run", "--set", "design.blocs=3"], 64, &["blocks"]);
}

#[test]
fn an_error_tells_each_cause_once() {
    let output = world::output(&["image", "--program", "Cargo.toml", "-o", "/dev/null"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("no image of Cargo.toml was made: it is no"),
        "{said}"
    );
    assert_eq!(said.matches("no program for Linux").count(), 1, "{said}");
}

#[test]
fn what_is_not_a_run_is_2() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    for command in ["report", "compare"] {
        refused(&[command, path], 2, &[path]);
        refused(&[command, "/nowhere"], 2, &["/nowhere"]);
    }
    refused(&["run", "--resume", path], 2, &[path]);
}

#[test]
fn a_newer_format_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("run.json"), "{\"format\": 999}").unwrap();
    fs::write(dir.path().join("trials.jsonl"), "").unwrap();
    refused(
        &["report", dir.path().to_str().unwrap()],
        2,
        &["999", "newer"],
    );
}

#[test]
fn lists_are_for_people_and_scripts() {
    assert!(stdout(&output(&["list", "experiments"])).contains("tour"));
    let workloads = crate::world::json(&["list", "workloads", "--json"]);
    let names: Vec<_> = workloads
        .as_array()
        .unwrap()
        .iter()
        .map(|w| w["name"].as_str().unwrap())
        .collect();
    let kinds = [
        "rr",
        "crr",
        "stream",
        "datagram",
        "http",
        "programming",
        "launch",
        "survive",
    ];
    assert_eq!(names, kinds);
}

#[test]
fn completions_and_manual_are_made() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(
            stdout(&output(&["completions", shell])).contains("plumbline"),
            "{shell}"
        );
    }
    assert!(stdout(&output(&["man"])).contains(".TH"));
    let dir = tempfile::tempdir().unwrap();
    let pages = dir.path().join("man");
    assert!(
        output(&["man", "--dir", pages.to_str().unwrap()])
            .status
            .success()
    );
    assert!(pages.join("plumbline-run.1").exists());
}

/// The arguments of a load or a server; `h` is an address where nothing listens.
fn arguments(flags: &str) -> Vec<String> {
    let words = flags.split(' ').map(|word| match word {
        "h:1" => "127.0.0.1:1".to_owned(),
        url => url.replace("http://h", "http://127.0.0.1:1"),
    });
    words.collect()
}

#[test]
fn contradictions_of_a_load_are_refused_with_a_remedy() {
    for (flags, remedy) in [
        ("load h:1 --workload stream --rate 5", "leave --rate out"),
        ("load h:1 --workload stream --spin", "leave --spin out"),
        ("load h:1 --udp --workload crr", "leave --udp out"),
        ("load http://h --udp", "leave --udp out"),
        ("load http://h --workload rr", "write HOST:PORT"),
        ("load http://h --response-size 9", "leave --response-size"),
        ("load h:1 --no-keep-alive", "leave --no-keep-alive out"),
        ("load h:1 --no-keep-alive", "crr never does"),
        ("load h:1 --arrival constant", "give a --rate"),
        ("load h:1 --timestamps --workload crr", "use rr"),
        ("load http://h --timestamps=2% --no-keep-alive", "use rr"),
        ("load h:1 --timestamps --driver uring", "--driver out"),
        (
            "load h:1 --timestamps --find-max p99<1ms",
            "the rate that was found",
        ),
        (
            "load h:1 --workload stream --driver uring",
            "always go by epoll",
        ),
        ("load h:1 -t 0", "use 1"),
        ("load h:1 -c 0", "from 1"),
        ("load h:1 -c 100001", "to 100000"),
        ("load h:1 --workload datagram -c 5000", "to 4096"),
        ("load h:1 -t 3 -c 2", "fewer --threads"),
        ("load h:1 --gso", "--gso"),
        ("load h:1 --zerocopy", "leave --zerocopy out"),
        ("load h:1 --ramp 0", "above 0"),
        ("load http://h --ramp 5 --no-keep-alive", "stay open"),
        ("load h:1 --workload stream --ramp 5", "stay open"),
        ("load h:1 -d 0", "from 10ms"),
        ("load h:1 -d 0ms", "from 10ms"),
        ("load h:1 -d soon", "such as 10s"),
        ("load h:1 --warm-up 1h", "to 300s"),
        ("load h:1 --rate 0", "above 0"),
        ("load h:1 --rate NaN", "above 0"),
        ("load h:1 --rate inf", "above 0"),
        ("load h:1 --rate 6M", "up to 5000000"),
        ("load h:1 --rate 0.01", "raise --rate or --duration"),
        ("load h:1 --request-size 15", "from 16"),
        ("load http://h --request-size 9", "leave --request-size out"),
        ("load h:1 --workload datagram --response-size 99", "leave"),
        ("serve -t 0", "use 1"),
        ("serve --udp --workload http", "leave --udp out"),
        (
            "serve --workload stream --request-size 9",
            "leave --request-size out",
        ),
        ("serve --udp --request-size 9", "from 16 to 65507"),
    ] {
        let arguments = arguments(flags);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        refused(&arguments, 64, &[remedy]);
    }
}

/// Nothing listens there, and no server can have the address: what is no bad usage
/// ends with another code.
#[test]
fn flags_of_a_load_that_belong_together_are_accepted() {
    for flags in [
        "load h:1",
        "load h:1 --udp --rate 5 --arrival constant --request-size 16",
        "load h:1 --udp --workload datagram -d 100ms",
        "load http://h/path --no-keep-alive -c 4 -t 4",
        "load http://h/ -c 40000 --ramp 5000 --source 10.0.0.3,10.0.0.4",
        "load h:1 --workload http --response-size 9",
        "load h:1 --workload datagram --request-size 16 --rate 1e3 -d 100ms",
        "load h:1 --workload stream --zerocopy",
        "load h:1 --warm-up 0",
        "load h:1 --ramp 500 --source 127.0.0.1,127.0.0.2",
        "load [::1]:1 --workload datagram --gso --source ::1 -d 100ms",
        "load h:1 --timestamps=5% --udp",
        "load h:1 --find-max p99<1ms --arrival constant",
        "load http://h --timestamps",
        "serve 192.0.2.1:1 --i-own-this --workload stream",
        "serve 192.0.2.1:1 --i-own-this --udp --request-size 16 --response-size 16",
    ] {
        let arguments = arguments(flags);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = output(&arguments);
        let text = stderr(&output);
        // Nobody answers there. Who floods nobody with datagrams is not told.
        let code = match flags.contains("--workload datagram") {
            true => 0,
            false => 2,
        };
        // This machine may not let a program open so many files; the flags are fine.
        let at_limit = text.find("the open-file limit of");
        let code = at_limit.map_or(code, |_| 64);
        assert_eq!(output.status.code(), Some(code), "{flags}: {text}");
        if let Some(at) = at_limit {
            world::skip("a load of more connections than files", text[at..].trim());
        }
    }
}

/// Elsewhere clap knows none of them.
#[test]
fn commands_that_need_linux_are_told_from_slips_where_there_is_none() {
    let commands = std::fs::read_to_string("src/cli/linux.rs").unwrap();
    let (_, commands) = commands.split_once("enum LinuxCommand {").unwrap();
    let (commands, _) = commands.split_once("\n}").unwrap();
    let is_variant = |line: &&str| line.trim().starts_with(char::is_uppercase);
    let lines: Vec<&str> = commands.lines().collect();
    let shown = lines
        .windows(2)
        .filter(|pair| !pair[0].contains("hide = true"));
    let names = shown.map(|pair| pair[1]).filter(is_variant);
    let names: Vec<String> = names
        .map(|line| line.trim().split(['(', ',']).next().unwrap().to_lowercase())
        .collect();
    let elsewhere = std::fs::read_to_string("src/command/elsewhere.rs").unwrap();
    let (_, listed) = elsewhere.split_once("ON_LINUX: [&str;").unwrap();
    let (listed, _) = listed.split_once("];").unwrap();
    let listed: Vec<&str> = listed.split('"').skip(1).step_by(2).collect();
    assert!(!names.is_empty());
    assert_eq!(names, listed);
}

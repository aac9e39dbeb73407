//! ssh that is cut at every stage of a run between two hosts: the run says on which host and at
//! which stage, and leaves nothing on either.

use std::collections::BTreeSet;
use std::fs;

use super::planted::Library;
use crate::hosts::two_hosts::TwoHosts;
use crate::hosts::{CLEANED, TWO_TRIALS, assert_measured, record};
use crate::inventory::Inventory;
use crate::observed::exit_code;
use crate::world::{eventually, run_directory, runs_in, stderr};

/// What is cut: ssh itself is killed, or its connection is shut down.
#[derive(Clone, Copy)]
enum Cut {
    Process,
    Connection,
}

/// Where ssh is cut.
struct Stage {
    host: &'static str,
    /// What has gone through it, one after the other; nothing at its end.
    text: &'static str,
    /// How long after that, ms.
    after: u32,
    cut: Cut,
    /// What is said of it.
    says: &'static str,
}

/// The ways to cut take turns.
const BEFORE_THE_FIRST_TRIAL: &[Stage] = &[
    Stage {
        host: "b",
        text: "SSH-2.0",
        after: 0,
        cut: Cut::Process,
        says: "ssh to b at the login: ",
    },
    Stage {
        host: "a",
        text: "\x7fELF",
        after: 0,
        cut: Cut::Connection,
        says: "ssh to a while the program was copied: ",
    },
    Stage {
        host: "b",
        text: "\"message\":\"hello\"",
        after: 0,
        cut: Cut::Process,
        says: "the agent on b ended while it was greeted: ssh to b: ",
    },
    Stage {
        host: "a",
        text: "\"message\":\"look\"",
        after: 0,
        cut: Cut::Connection,
        says: "the agent on a ended while it looked at the machine: ssh to a: ",
    },
    Stage {
        host: "a",
        text: "\"message\":\"floor\"",
        after: 100,
        cut: Cut::Process,
        says: "the agent on a ended while it measured its floor: ssh to a: ",
    },
];

/// Before a trial the machine is measured at rest, and before that the path is tried.
const IN_A_TRIAL: &[Stage] = &[
    Stage {
        host: "b",
        text: "\"message\":\"rest\"|\"message\":\"serve\"",
        after: 0,
        cut: Cut::Connection,
        says: "the agent on b ended while it received: ssh to b: ",
    },
    Stage {
        host: "a",
        text: "\"message\":\"rest\"|\"message\":\"load\"",
        after: 200,
        cut: Cut::Process,
        says: "the agent on a ended while it sent: ssh to a: ",
    },
    Stage {
        host: "b",
        text: "\"message\":\"rest\"|\"message\":\"stop\"",
        after: 0,
        cut: Cut::Connection,
        says: "the agent on b ended while what it saw was collected: ssh to b: ",
    },
];

/// Networks that take turns, whose agents share what leads to a host. While their clocks are read,
/// what each is in the middle of is up to the machine; when their machine is watched, all send.
const IN_TURNS: &[Stage] = &[
    Stage {
        host: "a",
        text: "\"message\":\"rest\"|\"message\":\"clock\"",
        after: 0,
        cut: Cut::Process,
        says: "the agent on a ended while ",
    },
    Stage {
        host: "a",
        text: "\"message\":\"rest\"|\"message\":\"watch\"",
        after: 0,
        cut: Cut::Connection,
        says: "the agent on a ended while it sent: ssh to a: ",
    },
];

/// No trial is lost: the machine is asked again, and a path that was not tried to the end is left
/// to the trials.
const BEFORE_A_TRIAL: &[Stage] = &[
    // The path is tried before the machine is measured at rest.
    Stage {
        host: "b",
        text: "\"message\":\"serve\"",
        after: 0,
        cut: Cut::Connection,
        says: "",
    },
    Stage {
        host: "b",
        text: "\"message\":\"rest\"",
        after: 0,
        cut: Cut::Process,
        says: "",
    },
];

const AT_THE_END: Stage = Stage {
    host: "a",
    text: "",
    after: 0,
    cut: Cut::Connection,
    says: "on a: ssh to a: ",
};

/// Two hosts, and a library that cuts what leads to them.
struct Cutter {
    hosts: TwoHosts,
    library: Library,
    machine: Inventory,
    processes: BTreeSet<u32>,
}

/// What a run said on standard error, and how it ended.
struct Said {
    text: String,
    code: Option<i32>,
}

impl Cutter {
    /// `None`, and a counted skip, where there are no hosts, or no C compiler.
    fn new(test: &str) -> Option<Self> {
        let hosts = TwoHosts::stand(test)?;
        let library = Library::compile(test)?;
        let (machine, processes) = (Inventory::take(), hosts.processes());
        Some(Self {
            hosts,
            library,
            machine,
            processes,
        })
    }

    /// A run of two trials that is cut so at a stage, and leaves nothing.
    #[track_caller]
    fn run(&self, stage: &Stage) -> Said {
        self.run_with(stage, &[])
    }

    /// The same with more arguments.
    #[track_caller]
    fn run_with(&self, stage: &Stage, more: &[&str]) -> Said {
        let out = self.hosts.path("out");
        // That of the run before, where it got so far.
        let _ = fs::remove_dir_all(&out);
        let done = self.hosts.path("cut");
        let Stage {
            host,
            text,
            after,
            cut,
            ..
        } = stage;
        let how = match cut {
            Cut::Process => "kill",
            Cut::Connection => "tcp",
        };
        let order = format!("{host} {how} {after} {} {text}", done.display());
        let output = self
            .hosts
            .run_with(&[], &[TWO_TRIALS, &["--duration", "500ms"], more].concat())
            .env("LD_PRELOAD", self.library.path())
            .env("PLANTED_CUT", order)
            .output()
            .expect("it starts");
        let said = stderr(&output);
        let cut = fs::remove_file(done);
        assert!(cut.is_ok(), "{how}, {text}: it was not cut: {said}");
        self.hosts.nothing_left();
        eventually("every process has ended", CLEANED, || {
            self.hosts.processes() == self.processes
        });
        self.machine.assert_unchanged();
        Said {
            text: said,
            code: output.status.code(),
        }
    }
}

impl Said {
    /// What is to be said is, once.
    #[track_caller]
    fn once(&self, says: &str) {
        assert_eq!(self.text.matches(says).count(), 1, "{says}: {}", self.text);
    }
}

#[test]
fn ssh_that_is_cut_before_the_first_trial_ends_the_run() {
    let Some(cutter) = Cutter::new("ssh that is cut before the first trial") else {
        return;
    };
    for stage in BEFORE_THE_FIRST_TRIAL {
        let said = cutter.run(stage);
        said.once(stage.says);
        said.once("plumbline: ");
        assert_eq!(said.code, Some(2), "{}", said.text);
        let runs = runs_in(&cutter.hosts.path("out"));
        assert!(runs.is_empty(), "{runs:?}");
    }
}

#[test]
fn ssh_that_is_cut_in_a_trial_costs_that_trial() {
    let Some(cutter) = Cutter::new("ssh that is cut in a trial") else {
        return;
    };
    let out = cutter.hosts.path("out");
    for stage in IN_A_TRIAL {
        let said = cutter.run(stage);
        let (_, trials) = record(&out);
        let status = &trials[0]["status"];
        assert_eq!(status["status"], "failed", "{status}: {}", said.text);
        let error = status["error"].as_str().expect("a sentence");
        assert!(error.starts_with(stage.says), "{error}");
        said.once(stage.says);
        assert_eq!(trials.len(), 2, "{}", said.text);
        assert_measured(&trials[1]);
        assert_eq!(said.code, Some(exit_code(&run_directory(&out))));
    }
    for stage in BEFORE_A_TRIAL {
        let said = cutter.run(stage);
        let (_, trials) = record(&out);
        assert_eq!(trials.len(), 2, "{}", said.text);
        assert_eq!(said.code, Some(exit_code(&run_directory(&out))));
        trials.iter().for_each(assert_measured);
    }
}

#[test]
fn ssh_that_is_cut_in_turns_costs_those_that_took_them() {
    let Some(cutter) = Cutter::new("ssh that is cut in turns") else {
        return;
    };
    let out = cutter.hosts.path("out");
    for stage in IN_TURNS {
        let said = cutter.run_with(stage, &["--address", "other=control"]);
        let (_, trials) = record(&out);
        assert_eq!(trials.len(), 4, "{}", said.text);
        let (lost, kept) = trials.split_at(2);
        for trial in lost {
            let error = trial["status"]["error"].as_str();
            let error = error.unwrap_or_else(|| panic!("{}: {}", trial["status"], said.text));
            assert!(error.starts_with(stage.says), "{error}");
        }
        kept.iter().for_each(assert_measured);
        assert_eq!(said.code, Some(exit_code(&run_directory(&out))));
    }
}

#[test]
fn ssh_that_is_cut_at_the_end_is_told_behind_the_results() {
    let Some(cutter) = Cutter::new("ssh that is cut at the end") else {
        return;
    };
    let out = cutter.hosts.path("out");
    let said = cutter.run(&AT_THE_END);
    said.once(AT_THE_END.says);
    said.once("look whether");
    assert_eq!(said.code, Some(2), "{}", said.text);
    let (_, trials) = record(&out);
    assert_eq!(trials.len(), 2, "{}", said.text);
    trials.iter().for_each(assert_measured);
    assert!(run_directory(&out).join("report.html").exists());
}

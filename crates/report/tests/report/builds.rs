//! A run that two builds of Plumbline took part in says so wherever it is shown.

use plumbline_record::{Build, GateFailure, Run, Trial, TrialStatus, Warning};
use plumbline_report::compare::{self, compare};
use plumbline_report::terminal::Style;
use plumbline_report::{Summary, csv, html, json, markdown, terminal};

use crate::documented;
use crate::fake::{Fake, Network};

/// A run that another build went on with.
fn mixed() -> (Run, Vec<Trial>) {
    let (run, mut trials) = Fake::new(&[Network::same("host"), Network::same("vxlan")]).run();
    trials[3].build = Some(Build {
        version: "0.2.0".to_owned(),
        sha256: "ab".repeat(32),
    });
    (run, trials)
}

#[test]
fn every_table_says_that_builds_were_mixed() {
    let (run, trials) = Fake::new(&[Network::same("host"), Network::same("vxlan")]).run();
    assert_eq!(Summary::new(&run, &trials).builds, 1);
    let (run, trials) = mixed();
    let summary = Summary::new(&run, &trials);
    assert_eq!(summary.builds, 2);
    let tables = summary.sections.len();
    let says = "by 2 builds of Plumbline";
    for (format, text) in [
        (
            "terminal",
            terminal::render(
                &summary,
                terminal::Style {
                    colour: false,
                    width: 400,
                },
            ),
        ),
        ("markdown", markdown::render(&summary)),
        ("html", html::render(&summary, &run, &trials)),
    ] {
        assert!(text.matches(says).count() >= tables, "{format}: {text}");
    }
    let object: serde_json::Value = documented::read(&json::render(&summary));
    assert_eq!(object["builds"], 2);
    let table = csv::render(&summary);
    let mut rows = table.split_terminator("\r\n");
    assert!(rows.next().unwrap().ends_with(",builds,damaged_lines"));
    assert!(rows.all(|row| row.ends_with(",2,0")));
}

#[test]
fn every_output_says_that_lines_were_damaged() {
    let (mut run, trials) = Fake::new(&[Network::same("host"), Network::same("vxlan")]).run();
    run.damaged_lines = 3;
    let summary = Summary::new(&run, &trials);
    let style = Style {
        colour: false,
        width: 400,
    };
    let compared = compare(
        &[(run.clone(), trials.clone()), (run.clone(), trials.clone())],
        false,
    );
    for (format, text) in [
        ("terminal", terminal::render(&summary, style)),
        ("markdown", markdown::render(&summary)),
        ("html", html::render(&summary, &run, &trials)),
        ("json", json::render(&summary)),
        ("compare", compare::render(&compared.unwrap(), style)),
    ] {
        assert!(
            text.contains("3 lines are not what was written"),
            "{format}: {text}"
        );
    }
    let table = csv::render(&summary);
    assert!(
        table
            .split_terminator("\r\n")
            .skip(1)
            .all(|row| row.ends_with(",3"))
    );
}

/// Two parts of a run may lie hours apart, and be of other clusters.
#[test]
fn trials_of_two_parts_of_a_run_are_not_compared() {
    let (run, mut trials) = Fake::new(&[Network::same("host"), Network::same("vxlan")]).run();
    let compared = |trials: &[Trial]| {
        let summary = Summary::new(&run, trials);
        summary.comparison(1, "p50").unwrap().effect.unwrap().blocks
    };
    let whole = compared(&trials);
    // The host of block 0 was measured by another part of the run than the rest.
    for trial in trials
        .iter_mut()
        .filter(|it| it.block == 0 && it.treatment == 0)
    {
        trial.session = 1;
    }
    assert_eq!(compared(&trials), whole - 1);
}

/// Figures of a run without a valid trial are few, and its warnings many.
#[test]
fn mixed_builds_are_the_first_warning_even_without_a_result() {
    let (mut run, mut trials) = mixed();
    for detail in ["one", "two", "three", "four", "five", "six"] {
        let detail = format!("node {detail} is not what a comparison wants; replace it");
        run.warnings.push(Warning::Nodes { detail });
    }
    for trial in &mut trials {
        trial.warnings.push(Warning::GeneratorBusy { share: 0.9 });
        let gates = vec![GateFailure::Disturbed {
            by: "other-load".to_owned(),
            amount: 0.4,
            limit: 0.2,
        }];
        trial.status = TrialStatus::Invalid { gates };
    }
    let summary = Summary::new(&run, &trials);
    assert!(!summary.has_results());
    let said = "2 builds of Plumbline ran";

    let shown = terminal::render(&summary, Style::default());
    let first = shown.lines().find(|line| line.starts_with("warning"));
    assert!(first.unwrap().contains(said), "{shown}");
    let text = markdown::render(&summary);
    let distrust = text.split_once("What to distrust\n\n").unwrap().1;
    assert!(distrust.lines().next().unwrap().contains(said), "{text}");
    let page = html::render(&summary, &run, &trials);
    let distrust = page.split_once("What to distrust").unwrap().1;
    let first = distrust.split("<li>").nth(1).unwrap();
    assert!(first.contains(said), "{first}");
    let object: serde_json::Value = documented::read(&json::render(&summary));
    assert!(object["warnings"][0].as_str().unwrap().contains(said));
    let table = csv::render(&summary);
    assert!(
        table
            .split_terminator("\r\n")
            .skip(1)
            .all(|row| row.ends_with(",2,0"))
    );

    let own = Fake::new(&[Network::same("host"), Network::same("vxlan")]).run();
    let compared = compare(&[own, (run, trials)], false).unwrap();
    documented::read_compared(&compare::json(&compared));
    let shown = compare::render(&compared, Style::default());
    let first = shown.lines().next().unwrap();
    assert!(
        first.starts_with("warning: run 2: ") && first.contains(said),
        "{shown}"
    );
}

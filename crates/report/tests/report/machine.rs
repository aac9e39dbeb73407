//! How exactly a machine measured: controls, and the precision that was asked for.

use plumbline_experiment::Precision;
use plumbline_record::{Run, Trial, TrialStatus};
use plumbline_report::analysis::{Comparison, Effect};
use plumbline_report::terminal::{self, Style};
use plumbline_report::{Summary, csv, html, json, markdown};
use plumbline_stats::Interval;

use crate::documented;
use crate::fake::{Fake, Network, rr};

const WIDE: Style = Style {
    colour: false,
    width: 400,
};

/// Three networks under one workload, and a copy of the first as its control.
fn controlled() -> (Run, Vec<Trial>) {
    let slow = Network {
        latency: 1.3,
        ..Network::same("vxlan")
    };
    let networks = [
        Network::same("host"),
        slow,
        Network::same("macvlan"),
        Network::same("host#2"),
    ];
    let fake = Fake {
        workloads: vec![rr()],
        ..Fake::new(&networks)
    };
    let (mut run, trials) = fake.run();
    run.plan.controls = 1;
    (run, trials)
}

#[test]
fn a_control_is_said_by_itself_and_changes_nothing_else() {
    let (run, trials) = controlled();
    let summary = Summary::new(&run, &trials);
    assert_eq!(summary.treatments.len(), 3);
    assert!(summary.comparisons.iter().all(|one| one.treatment < 3));
    assert_eq!(summary.account.planned, 30);
    let controls = &summary.controls;
    assert!(controls.len() == 2 && controls.iter().all(|one| one.baseline == 0));
    for control in controls {
        let interval = control.effect.unwrap().interval.unwrap();
        assert!(interval.low < 0.05 && interval.high > -0.05, "{interval:?}");
    }
    let mut without = run.clone();
    without.plan = run.plan.clone().without_controls();
    let kept: Vec<Trial> = trials
        .iter()
        .filter(|it| it.treatment < 3)
        .cloned()
        .collect();
    let alone = Summary::new(&without, &kept);
    assert_eq!(csv::render(&summary), csv::render(&alone));
    for (one, other) in summary.comparisons.iter().zip(&alone.comparisons) {
        assert_eq!(format!("{one:?}"), format!("{other:?}"));
    }
    assert!(alone.controls.is_empty());
}

#[test]
fn every_output_says_what_the_machine_shows_where_nothing_differs() {
    let (run, trials) = controlled();
    let summary = Summary::new(&run, &trials);
    for (format, text) in [
        ("terminal", terminal::render(&summary, WIDE)),
        ("markdown", markdown::render(&summary)),
        ("html", html::render(&summary, &run, &trials)),
        ("json", json::render(&summary)),
    ] {
        let said = "between host and a copy of it, this machine shows under rr p50";
        assert_eq!(text.matches(said).count(), 1, "{format}: {text}");
        assert!(!text.contains("host#2"), "{format}: {text}");
    }
    let object = documented::read(&json::render(&summary));
    assert_eq!(object["controls"][0]["baseline"], "host");
    assert!(object["controls"][0]["change_low"].is_number());
}

#[test]
fn the_page_says_it_openly_below_its_table() {
    let (run, trials) = precise(0.5);
    let summary = Summary::new(&run, &trials);
    let page = html::render(&summary, &run, &trials);
    let (open, _) = page.split_once("<details").expect("folded details");
    assert!(open.contains("Where nothing differs, between host and a copy of it"));
    assert!(open.contains("Precision: every main interval is within"));
}

#[test]
fn a_difference_where_nothing_differs_is_a_warning() {
    let (run, trials) = controlled();
    let doubt = "arning: run again before small differences in ";
    let all = |summary: &Summary, trials: &[Trial]| {
        [
            terminal::render(summary, WIDE),
            markdown::render(summary),
            html::render(summary, &run, trials),
            json::render(summary),
        ]
    };
    for text in all(&Summary::new(&run, &trials), &trials) {
        assert!(!text.contains(doubt), "{text}");
    }
    let mut drifted = trials.clone();
    for trial in drifted.iter_mut().filter(|it| it.treatment == 3) {
        let machine = &mut trial.observation.as_mut().unwrap().common.machines[0];
        machine.busy_ns += machine.busy_ns / 5;
        machine.idle_ns = machine.capacity_ns - machine.busy_ns;
    }
    for text in all(&Summary::new(&run, &drifted), &drifted) {
        let (_, said) = text.split_once(doubt).expect("said");
        let why = "CPU/req under rr are believed: this machine showed one where nothing differs; \
                   by chance";
        assert!(said.starts_with(why), "{said}");
        assert!(!said.contains(doubt), "once: {text}");
    }
    let text = terminal::render(&Summary::new(&run, &drifted), WIDE);
    assert!(text.contains(&format!("\nw{doubt}")), "{text}");
}

#[test]
fn several_baselines_show_together_what_their_copies_show() {
    let (run, trials) = controlled();
    let mut summary = Summary::new(&run, &trials);
    let of_other = |one: &Comparison| {
        let effect = one.effect.map(|effect| Effect {
            interval: effect.interval.map(|it| Interval { high: 0.5, ..it }),
            ..effect
        });
        let baseline = 1;
        Comparison {
            effect,
            baseline,
            ..one.clone()
        }
    };
    let of_others: Vec<_> = summary.controls.iter().map(of_other).collect();
    summary.controls.extend(of_others);
    let text = markdown::render(&summary);
    let said = "between each baseline and a copy of it, this machine shows under rr p50 ";
    let (_, shown) = text.split_once(said).expect("said");
    let of_rr = shown.split(['\n', ';']).next().unwrap();
    assert!(of_rr.contains(" to 50 %, CPU"), "{of_rr}");
    assert!(!of_rr.contains("p50"), "once: {of_rr}");
}

/// A run that was asked for intervals of ±`half_width` and has room for more blocks.
fn precise(half_width: f64) -> (Run, Vec<Trial>) {
    let (mut run, trials) = controlled();
    run.plan.precision = Some(Precision {
        half_width,
        first_blocks: 8,
        budget_ns: None,
    });
    let more = run.plan.blocks.clone();
    run.plan.blocks.extend(more);
    (run, trials)
}

#[test]
fn blocks_that_precision_did_not_need_are_not_missing() {
    let (run, trials) = precise(0.5);
    let summary = Summary::new(&run, &trials);
    assert_eq!((summary.blocks, summary.is_cut_off()), (10, false));
    assert!(summary.precision.as_ref().unwrap().is_reached());
    let text = terminal::render(&summary, WIDE);
    let said = "Precision: every main interval is within ±50 % of its ratio after 10 blocks";
    assert!(text.replace('\u{a0}', " ").contains(said), "{text}");
}

#[test]
fn a_precision_that_was_not_reached_is_said_with_the_widest_interval() {
    let (run, trials) = precise(0.001);
    let summary = Summary::new(&run, &trials);
    let reached = summary.precision.as_ref().unwrap();
    assert!(!reached.is_reached() && reached.widest().is_finite());
    let text = markdown::render(&summary).replace('\u{a0}', " ");
    assert!(
        text.contains("±0.1 % was not reached in 10 blocks, the widest is ±"),
        "{text}"
    );
    let object = documented::read(&json::render(&summary));
    assert_eq!(object["precision"]["reached"], false);
}

/// Intervals that nobody has are not narrow.
#[test]
fn where_no_trial_counts_no_precision_is_reached() {
    let (run, mut trials) = precise(0.5);
    for trial in &mut trials {
        trial.status = TrialStatus::Failed {
            error: "its pod was killed".to_owned(),
        };
    }
    let summary = Summary::new(&run, &trials);
    assert!(!summary.precision.as_ref().unwrap().is_reached());
    let object = documented::read(&json::render(&summary));
    assert_eq!(object["precision"]["reached"], false);
    assert!(object["precision"]["widest"].is_null());
}

#[test]
fn intervals_are_a_little_wider_where_they_decided_the_length() {
    let (run, trials) = controlled();
    let (asked, _) = precise(0.001);
    let width = |run: &Run| {
        let summary = Summary::new(run, &trials);
        let effect = summary.comparison(1, "p50").unwrap().effect.unwrap();
        let interval = effect.interval.unwrap();
        interval.high - interval.low
    };
    assert!(width(&asked) > width(&run));
}

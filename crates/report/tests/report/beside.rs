//! A run beside a published study.

use plumbline_experiment::{Enforcer, Policies, Scene, Workload, WorkloadKind};
use plumbline_report::analysis::Beside;
use plumbline_report::terminal::Style;
use plumbline_report::{Summary, html, json, markdown, terminal};

use crate::documented;
use crate::fake::growing::{HOST, dressed};
use crate::fake::{Fake, Network, rr};

/// The networks of the study, cheapest first, each `step` dearer than the last.
fn networks(step: f64) -> Vec<Network> {
    ["host", "ipvlan-l2", "aws-vpc", "host-gw", "vxlan"]
        .into_iter()
        .enumerate()
        .map(|(place, label)| Network {
            latency: (1.0 + step).powi(place as i32),
            ..Network::same(label)
        })
        .collect()
}

fn workload(name: &str) -> Workload {
    Workload {
        name: name.to_owned(),
        kind: WorkloadKind::Http,
        ..rr()
    }
}

fn fake(step: f64) -> Fake {
    Fake {
        workloads: vec![workload("350B-30"), workload("4KB-60")],
        ..Fake::new(&networks(step))
    }
}

/// The run's formats, and its summary.
struct Shown {
    summary: Summary,
    terminal: String,
    markdown: String,
    html: String,
    json: serde_json::Value,
}

fn shown(fake: &Fake) -> Shown {
    shown_beside(fake, "machinezone-2016")
}

fn shown_beside(fake: &Fake, study: &str) -> Shown {
    let (mut run, trials) = fake.run();
    run.plan.study = Some(study.to_owned());
    let summary = Summary::new(&run, &trials);
    Shown {
        terminal: terminal::render(&summary, Style::default()),
        markdown: markdown::render(&summary),
        html: html::render(&summary, &run, &trials),
        json: documented::read(&json::render(&summary)),
        summary,
    }
}

fn beside(shown: &Shown) -> &Beside {
    shown
        .summary
        .beside
        .as_ref()
        .expect("the plan names a study")
}

#[test]
fn the_same_order_agrees_as_far_as_the_ties_of_the_study_allow() {
    let shown = shown(&fake(0.2));
    let found = beside(&shown);
    assert_eq!(found.tables.len(), 2, "of four, those that the run answers");
    assert_eq!(found.tables[1].table, 3);
    let order = &found.agreement[0];
    assert_eq!(order.percentile, "p95");
    // aws-vpc and host-gw are equal in both tables at p95: 18 of 20 pairs.
    assert_eq!(
        (
            order.agreement.pairs.same,
            order.agreement.pairs.tied_in_first
        ),
        (18, 2)
    );
    assert!((order.agreement.tau - (18.0f64 / 20.0).sqrt()).abs() < 1e-12);
    let interval = order.agreement.interval.expect("10 blocks");
    assert!((interval.low - interval.high).abs() < 1e-12, "{interval:?}");
    let of_table = &found.tables[0].agreement[0];
    // The tie makes two of the 120 orders equally good.
    assert!((of_table.by_chance.unwrap() - 2.0 / 120.0).abs() < 1e-12);
}

#[test]
fn the_reverse_order_disagrees_and_says_so() {
    let shown = shown(&fake(-0.15));
    let order = &beside(&shown).agreement[0].agreement;
    assert!(order.tau < -0.9, "{order:?}");
    assert!(order.interval.unwrap().high < 0.0, "{order:?}");
    assert!(shown.terminal.contains("tau -0.95"), "{}", shown.terminal);
}

#[test]
fn networks_that_are_alike_leave_the_order_open() {
    let shown = shown(&fake(0.0005));
    let order = &beside(&shown).agreement[0].agreement;
    let interval = order.interval.unwrap();
    assert!(interval.high - interval.low > 0.3, "{order:?}");
}

#[test]
fn every_format_shows_the_published_figures_beside_ours() {
    let shown = shown(&fake(0.2));
    let tables = [&shown.terminal, &shown.markdown, &shown.html];
    for text in tables {
        for part in ["MachineZone", "2016", "Kendall", "1.2", "2.40", "vxlan"] {
            assert!(text.contains(part), "no {part} in {text}");
        }
    }
    let published = &shown.json["published"];
    assert_eq!(published["study"], "machinezone-2016");
    assert_eq!(published["tables"][0]["rows"][4]["network"], "vxlan");
    assert_eq!(
        published["tables"][0]["rows"][4]["published_ns"][0],
        1_200_000.0
    );
    let here = published["tables"][0]["rows"][4]["here_ns"]
        .as_array()
        .unwrap();
    assert!(
        here[0].as_f64().unwrap() > 0.0 && here[5].is_null(),
        "{here:?}"
    );
    let order = &published["order"][0];
    for key in ["tau", "low", "high", "highest_tau", "pairs_same"] {
        assert!(order[key].is_number(), "{key}: {order}");
    }
    assert!(
        shown
            .terminal
            .lines()
            .all(|line| line.chars().count() <= 80),
        "{}",
        shown.terminal
    );
}

#[test]
fn without_samples_or_without_the_reference_no_order_is_claimed() {
    let few = Fake {
        samples: 100,
        ..fake(0.2)
    };
    let shown_few = shown(&few);
    assert!(beside(&shown_few).agreement.is_empty());
    assert!(
        shown_few.terminal.contains("cannot be compared"),
        "{}",
        shown_few.terminal
    );

    assert!(
        shown_few
            .terminal
            .contains("no published figure has enough samples"),
        "{}",
        shown_few.terminal
    );

    let without_host = Fake {
        networks: networks(0.2)[1..].to_vec(),
        ..fake(0.2)
    };
    assert!(beside(&shown(&without_host)).agreement.is_empty());
}

#[test]
fn a_study_without_figures_is_there_in_words() {
    let shown = shown_beside(&fake(0.2), "gojek-kubecon-2018");
    assert!(beside(&shown).tables.is_empty() && beside(&shown).agreement.is_empty());
    for text in [&shown.terminal, &shown.markdown, &shown.html] {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains("Flannel, Weave and Romana perform better"),
            "{text}"
        );
    }
    let published = &shown.json["published"];
    assert_eq!(
        published["tables"].as_array().map(Vec::len),
        Some(0),
        "{published}"
    );
    assert_eq!(
        published["order"].as_array().map(Vec::len),
        Some(0),
        "{published}"
    );
}

/// Requests over new connections, and more of them the more policies there are, by two
/// enforcers of which the study measured one.
#[test]
fn a_table_of_levels_stands_beside_the_treatments_that_have_them() {
    let mut scenes = vec![(Scene::of("romana"), HOST)];
    for enforcer in [Enforcer::Romana1, Enforcer::Romana] {
        scenes.extend([10, 50, 100, 200].map(|count| {
            let policies = Policies {
                count,
                enforcer,
                ..Policies::default()
            };
            let scene = Scene {
                policies,
                ..Scene::of("romana")
            };
            (scene, HOST + 250.0 * f64::from(count))
        }));
    }
    let http = Workload {
        keep_alive: false,
        ..workload("512B")
    };
    let (mut run, trials) = dressed(10, &scenes, &[http]);
    run.plan.study = Some("pani-2016".to_owned());
    let summary = Summary::new(&run, &trials);
    let found = summary.beside.as_ref().expect("the plan names a study");
    let [table] = &found.tables[..] else {
        panic!("one workload of five: {found:?}");
    };
    let treatments: Vec<usize> = table.rows.iter().map(|row| row.treatment).collect();
    assert_eq!(treatments, [0, 1, 2, 3, 4], "none of the other enforcer");
    let order = &found.agreement[0];
    assert_eq!(
        (order.percentile.as_str(), order.agreement.pairs.same),
        ("mean", 10)
    );

    let page = html::render(&summary, &run, &trials);
    // Two lines each, at the four levels of one law.
    assert_eq!(page.matches(r#"class="mark""#).count(), 8);
    assert!(page.contains("crosses are what was published"));
    let text = markdown::render(&summary);
    assert!(
        text.contains("Pani Networks (2016) published +2")
            && text.contains("for each policy as romana-1"),
        "{text}"
    );
    let report = documented::read(&json::render(&summary));
    let row = &report["published"]["tables"][0]["rows"][4];
    assert_eq!(row["treatment"], "routed#4");
    assert_eq!(
        (&row["network"], &row["published_ns"][0]),
        (&"".into(), &783_000.0.into())
    );
    assert!(row["here_ns"][0].as_f64().unwrap() > HOST, "{row}");
}

#[test]
fn a_run_without_a_study_has_nothing_beside_it() {
    let (run, trials) = fake(0.2).run();
    let summary = Summary::new(&run, &trials);
    assert!(summary.beside.is_none());
    let json: serde_json::Value = documented::read(&json::render(&summary));
    assert!(json["published"].is_null());
    assert!(!html::render(&summary, &run, &trials).contains("MachineZone"));
}

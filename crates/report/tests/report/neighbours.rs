//! What neighbours did while a path was measured.

use plumbline_experiment::{NeighbourKind, Neighbours};
use plumbline_record::{NeighbourRecord, ProcessCpu};
use plumbline_report::{Summary, html, json, markdown, terminal};

use crate::documented;
use crate::fake::{self, Fake, Network};

#[test]
fn every_format_says_what_the_neighbours_did() {
    let fake = Fake {
        workloads: vec![fake::rr()],
        ..Fake::new(&[Network::same("vxlan"); 2])
    };
    let (mut run, mut trials) = fake.run();
    let noisy = &mut run.plan.treatments[1];
    noisy.label = "vxlan beside bulk".to_owned();
    noisy.scene.neighbours = Neighbours {
        kind: NeighbourKind::Bulk,
        ..Neighbours::default()
    };
    for trial in trials.iter_mut().filter(|it| it.treatment == 1) {
        trial.observation.as_mut().unwrap().common.neighbour = Some(NeighbourRecord {
            window_ns: 500_000_000,
            done: 1_000_000_000,
            cpu: ProcessCpu {
                user_ns: 300_000_000,
                system_ns: 100_000_000,
            },
        });
    }
    let summary = Summary::new(&run, &trials);
    let page = html::render(&summary, &run, &trials);
    let markdown = markdown::render(&summary);
    let terminal = terminal::render(&summary, terminal::Style::default());
    for text in [&page, &markdown, &terminal] {
        let words: Vec<&str> = text.split_whitespace().collect();
        let text = words.join(" ");
        let did = "Meanwhile the neighbours did: vxlan beside bulk 16.0 Gbit/s by 0.80 CPUs.";
        assert!(text.contains(did), "{text}");
    }
    assert!(page.contains("neighbours did</th>"), "{page}");
    for text in ["| neighbours did |", "| 16.0 Gbit/s by 0.80 CPUs |"] {
        assert!(markdown.contains(text), "{text}: {markdown}");
    }
    let report = documented::read(&json::render(&summary));
    let [alone, beside] = [0, 1].map(|at: usize| &report["treatments"][at]);
    assert!(alone.get("neighbour").is_none(), "{alone}");
    let neighbour = &beside["neighbour"];
    assert_eq!(neighbour["unit"], "bits");
    assert_eq!(neighbour["per_second"]["median"], 16e9);
    assert_eq!(neighbour["cpus"]["median"], 0.8);
}

/// Beside `cpu` requests take twice as long, beside the stream four times.
#[test]
fn a_neighbour_is_told_against_one_that_only_computes() {
    let slower = |latency| Network {
        latency,
        ..Network::same("vxlan")
    };
    let fake = Fake {
        workloads: vec![fake::rr()],
        ..Fake::new(&[1.0, 2.0, 4.0].map(slower))
    };
    let told = |kinds: [NeighbourKind; 3]| {
        let (mut run, trials) = fake.run();
        for (treatment, kind) in run.plan.treatments.iter_mut().zip(kinds) {
            treatment.label = format!("vxlan beside {}", kind.as_str());
            treatment.scene.neighbours.kind = kind;
        }
        let summary = Summary::new(&run, &trials);
        let text = markdown::render(&summary);
        let mut lines = text.lines();
        let line = lines.find(|it| it.contains("Against the same beside cpu"))?;
        let words: Vec<&str> = line.split_whitespace().collect();
        Some(words.join(" "))
    };
    use NeighbourKind::{Bulk, Cpu, None as Alone, PolicyChurn};
    let sentence = told([Alone, Cpu, Bulk]).expect("there is a neighbour of each kind");
    let (_, bulk) = sentence.split_once("p50 of vxlan beside bulk +").unwrap();
    let (change, interval) = bulk.split_once(" % (").expect(&sentence);
    assert!(
        (90.0..110.0).contains(&change.parse().unwrap()),
        "{sentence}"
    );
    assert!(interval.ends_with(" %)."), "{sentence}");
    for without in [[Alone, Cpu, Alone], [Alone, PolicyChurn, Bulk]] {
        assert_eq!(told(without), None, "{without:?}");
    }
}

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

//! Time stamps of the kernel over the networks of the lab (L-17).

use plumbline_record::{Spans, Trial};

use crate::observed::{ran_to_its_end, whole_lines};
use crate::world::{lab, output, run_directory};

const EXPERIMENT: &str = r#"
name = "stamps"
[factors]
network = ["host", "routed", "macvlan", "vxlan"]
[[workload]]
name = "tcp"
kind = "rr"
rate = 2000
timestamps = "100%"
[[workload]]
name = "udp"
kind = "rr"
protocol = "udp"
rate = 2000
timestamps = "100%"
[[workload]]
kind = "http"
rate = 2000
timestamps = "100%"
[design]
blocks = 1
retries = 0
duration = "300ms"
"#;

#[test]
fn every_network_and_protocol_is_stamped_and_the_spans_add_up() {
    let Some(_alone) = lab("every network and protocol is stamped") else {
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    let (file, out) = (
        scratch.path().join("stamps.toml"),
        scratch.path().join("runs"),
    );
    std::fs::write(&file, EXPERIMENT).unwrap();
    let paths = [&file, &out].map(|path| path.to_str().unwrap().to_owned());
    let result = output(&["run", &paths[0], "--out", &paths[1]]);
    let run = run_directory(&out);
    ran_to_its_end(&result, &run);
    let trials = whole_lines(&run);
    assert!(trials.len() >= 12, "{} trials", trials.len());
    for line in trials {
        // A trial that others disturbed adds up as well.
        let trial: Trial = serde_json::from_value(line).unwrap();
        let seen = trial.observation.expect("it ran");
        let load = &seen.load().expect("it was a load").load;
        check(
            load.spans.as_deref().expect("it was stamped"),
            load.completed,
        );
    }
}

#[track_caller]
fn check(spans: &Spans, completed: u64) {
    // Nearly all where nobody disturbs. A sender that is kept from its CPU
    // reads answers together, and has more requests out than are sampled.
    assert!(spans.complete * 10 > completed, "{completed}: {spans:?}");
    // Receives are stamped some milliseconds after they were asked for: in
    // the warm-up.
    assert_eq!(spans.unstamped, 0, "{spans:?}");
    let sum: f64 = spans.in_order().iter().map(|(_, span)| span.mean()).sum();
    let whole = spans.service_time.mean();
    // Each histogram is within 0.1 %; each request's spans add up exactly.
    assert!(
        (sum - whole).abs() <= whole * 0.002 + 4.0,
        "{sum} of {whole}"
    );
    assert!(spans.clock_error.value_at(0.5) < 5_000, "{spans:?}");
}

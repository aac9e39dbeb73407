//! A responder that computes before it answers.

use std::time::Duration;

use plumbline_experiment::{Protocol, Workload, WorkloadKind};

use crate::rig::{both_ends, loopback_v4, workload};

fn no_answer_comes_before_the_responder_has_thought() {
    let think = Duration::from_micros(500);
    let udp = Workload {
        protocol: Protocol::Udp,
        ..workload(WorkloadKind::Rr)
    };
    for kind in [
        workload(WorkloadKind::Rr),
        workload(WorkloadKind::Crr),
        workload(WorkloadKind::Http),
        udp,
    ] {
        let spec = Workload {
            think_ns: think.as_nanos() as u64,
            ..kind
        };
        let (load, seen) = both_ends(&spec, loopback_v4());
        assert!(load.completed > 0, "{}", spec.name);
        // Within the precision of a histogram.
        let least = load.service_time.value_at(0.0) as f64;
        assert!(
            least > 0.99 * spec.think_ns as f64,
            "{}: {least}",
            spec.name
        );
        // One after the other, each its own time.
        let most = (load.window_ns + 600_000_000) / spec.think_ns;
        assert!(seen.requests <= most, "{}: {}", spec.name, seen.requests);
    }
}

by_each_driver! {
    no_answer_comes_before_the_responder_has_thought,
}

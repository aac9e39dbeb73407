//! How long a lab of two nodes and two pods takes to come up and to go down,
//! for every network that this kernel can build, and to count what its devices
//! carried. The limits are 150 ms, 150 ms and 2 ms; programs of a network's own
//! (`flannel-udp`) are started and ended within them.
//!
//! `cargo bench -p plumbline-lab --bench lab -- 'lab (up|down).* v4'`, for the
//! two endpoints on one node `… v4 same-node`.

use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use plumbline_experiment::{Family, Placement};
use plumbline_lab::{Catalogue, LabError, Launcher, PathSpec, catalogue};
use plumbline_testkit as testkit;

fn wishes() -> impl Iterator<Item = (Family, Placement)> {
    let placements = [Placement::CrossNode, Placement::SameNode];
    [Family::V4, Family::V6]
        .into_iter()
        .flat_map(move |family| placements.map(|placement| (family, placement)))
}

fn lab(criterion: &mut Criterion) {
    if !testkit::in_private_namespaces("lab benchmark") {
        return;
    }
    let launcher = Launcher::new("unused".into(), Vec::new());
    let probe = Catalogue::default();
    for name in catalogue::names() {
        for (family, placement) in wishes() {
            let spec = PathSpec {
                network: name.into(),
                placement,
                family,
                mtu: 1500,
            };
            let validated = match spec.validate(&probe) {
                Ok(validated) => validated,
                Err(error @ LabError::Unsupported { .. }) => {
                    // What a network needs does not depend on the IP version.
                    testkit::skip(name, &error.to_string());
                    break;
                }
                // The real system has no such path.
                Err(LabError::Family { .. }) => continue,
                Err(error) => panic!("{error}"),
            };
            let where_to = match placement {
                Placement::CrossNode => "",
                Placement::SameNode => " same-node",
            };
            let label = format!("{name} v{}{where_to}", u8::from(family));
            // Each iteration does both; each benchmark counts one of them.
            let mut cycle = |what: &str, part: fn(Duration, Duration) -> Duration| {
                criterion.bench_function(&format!("lab {what}: {label}"), |bencher| {
                    bencher.iter_custom(|rounds| {
                        let mut total = Duration::ZERO;
                        for _ in 0..rounds {
                            let start = Instant::now();
                            let mut standing = validated.build(&launcher).expect("up");
                            let up = start.elapsed();
                            let start = Instant::now();
                            let errors = standing.take_down();
                            drop(standing);
                            total += part(up, start.elapsed());
                            assert!(errors.is_empty(), "{errors:?}");
                        }
                        total
                    });
                });
            };
            cycle("up", |up, _| up);
            cycle("down", |_, down| down);

            // What the harness does at the edges of a trial's phases.
            let standing = validated.build(&launcher).expect("up");
            criterion.bench_function(&format!("lab snapshot: {label}"), |bencher| {
                bencher.iter(|| standing.counters().expect("counters"));
            });
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1500))
        .without_plots();
    targets = lab
}
criterion_main!(benches);

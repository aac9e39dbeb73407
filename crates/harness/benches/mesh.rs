//! How long the schedule of a mesh takes, with simulated sites that check that
//! no node is wanted twice in a round and every pair meets once.

#[path = "../tests/mesh/sites.rs"]
mod sites;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};

use sites::{Sites, mesh};

fn schedule(criterion: &mut Criterion) {
    for nodes in [10, 100, 1000] {
        criterion.bench_function(&format!("schedule of {nodes} nodes"), |bencher| {
            bencher.iter(|| {
                let trials = Sites::new(nodes).run(&mesh(nodes), black_box(7));
                assert_eq!(trials, nodes * (nodes - 1) / 2);
                trials
            });
        });
    }
}

criterion_group!(benches, schedule);
criterion_main!(benches);

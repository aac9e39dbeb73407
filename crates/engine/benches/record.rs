//! What it costs to record a latency: at most 15 ns is the aim.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use plumbline_record::Histogram;
use plumbline_sys::clock::now_ns;

/// Durations as a load has them: around 50 µs with a long tail.
fn latencies() -> Vec<u64> {
    let mut state = 1_u64;
    (0..4_096)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            30_000 + (state >> 48) + if state >> 60 == 0 { state >> 42 } else { 0 }
        })
        .collect()
}

fn record(c: &mut Criterion) {
    let latencies = latencies();
    let mut histogram = Histogram::new();
    let mut next = latencies.iter().cycle();
    c.bench_function("record a latency", |b| {
        b.iter(|| histogram.record(black_box(*next.next().unwrap_or(&0))));
    });
    c.bench_function("read the clock", |b| b.iter(now_ns));
}

criterion_group!(benches, record);
criterion_main!(benches);

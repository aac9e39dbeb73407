//! 1,000 trials from raw to every format; each should take at most a second.

#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../tests/report/fake.rs"]
mod fake;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use plumbline_report::{Summary, csv, html, json, markdown, terminal};

fn thousand_trials(c: &mut Criterion) {
    let mut fake = fake::Fake::new(&fake::networks()[..5]);
    fake.blocks = 100;
    let (run, trials) = fake.run();
    assert_eq!(trials.len(), 1_000);
    let summary = Summary::new(&run, &trials);

    let mut group = c.benchmark_group("1000 trials");
    group.sample_size(10);
    group.bench_function("summary", |b| {
        b.iter(|| Summary::new(black_box(&run), &trials))
    });
    group.bench_function("html", |b| {
        b.iter(|| html::render(black_box(&summary), &run, &trials))
    });
    group.bench_function("terminal", |b| {
        b.iter(|| terminal::render(black_box(&summary), terminal::Style::default()))
    });
    group.bench_function("markdown", |b| {
        b.iter(|| markdown::render(black_box(&summary)))
    });
    group.bench_function("csv", |b| b.iter(|| csv::render(black_box(&summary))));
    group.bench_function("json", |b| b.iter(|| json::render(black_box(&summary))));
    group.finish();
}

criterion_group!(benches, thousand_trials);
criterion_main!(benches);

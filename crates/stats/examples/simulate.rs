//! How often the judgements of this crate hold, by simulation.
//!
//!     cargo run --release -p plumbline-stats --example simulate [PART]...
//!
//! The tests do the same with fewer repetitions. Everything is seeded.

use std::time::Instant;

use plumbline_stats::family::{self, JointEffect};

#[path = "../tests/noise/mod.rs"]
mod noise;

use noise::bursts::{Bursty, by_exceedances, by_medians};
use noise::gate::{Answers, answers, limit};
use noise::mesh::Mesh;
use noise::precision::Stopped;
use noise::{Noise, Source};

const ALPHA: f64 = 0.05;

fn main() {
    let chosen: Vec<String> = std::env::args().skip(1).collect();
    let parts: [(&str, fn()); 7] = [
        ("speed", speed),
        ("family", family_coverage),
        ("power", power),
        ("bursts", burst_coverage),
        ("meshes", meshes),
        ("precision", precision_coverage),
        ("gates", gates),
    ];
    for (name, part) in parts {
        if chosen.is_empty() || chosen.iter().any(|one| one == name) {
            let started = Instant::now();
            part();
            println!("({name}: {:.1} s)\n", started.elapsed().as_secs_f64());
        }
    }
}

fn speed() {
    println!("comparisons, blocks, seconds");
    for (comparisons, blocks) in [(200, 16), (200, 17), (120, 13), (20, 40)] {
        let data = Source::new(1, Noise::Normal).family(&vec![0.0; comparisons], blocks);
        let started = Instant::now();
        family::compare(&data, ALPHA, 1).unwrap();
        println!(
            "{comparisons:4} {blocks:3} {:6.3}",
            started.elapsed().as_secs_f64()
        );
    }
}

/// What one family showed, given the truth of each comparison.
#[derive(Default)]
struct Tally {
    families: f64,
    false_alarm: f64,
    joint: f64,
    joint_uncut: f64,
    alone: f64,
    cut: f64,
    found: f64,
    effects: f64,
    comparisons: f64,
    width: f64,
}

impl Tally {
    fn add(&mut self, found: &[JointEffect], truth: &[f64]) {
        let both = || found.iter().zip(truth);
        let holds = |(one, &truth): (&JointEffect, &f64)| one.joint.contains(truth.exp_m1());
        let holds_uncut = |(one, &truth): (&JointEffect, &f64)| {
            let truth = truth.exp_m1();
            let at_zero = one.is_cut && one.joint.low.abs().min(one.joint.high.abs()) < 1e-300;
            let far = if one.ratio_minus_one > 0.0 {
                truth <= one.joint.high
            } else {
                truth >= one.joint.low
            };
            if at_zero {
                far
            } else {
                one.joint.contains(truth)
            }
        };
        let count = |yes: bool| f64::from(u8::from(yes));
        self.families += 1.0;
        self.false_alarm += count(both().any(|(one, &t)| t == 0.0 && one.is_different()));
        self.joint += count(both().all(holds));
        self.joint_uncut += count(both().all(holds_uncut));
        for (one, &truth) in both() {
            self.comparisons += 1.0;
            self.alone += count(one.alone.contains(truth.exp_m1()));
            self.cut += count(one.is_cut);
            self.effects += count(truth != 0.0);
            self.found += count(truth != 0.0 && one.is_different());
            self.width += (one.joint.high.ln_1p() - one.joint.low.ln_1p()) / 2.0;
        }
    }
}

fn family_coverage() {
    println!(
        "noise of sigma 1 %; effects: none, all 10 %, every other 10 %, every other 3 %\n\
         in %: any false alarm, all joint hold, the same but for cut ends, alone holds, cut, found; half-width of joint"
    );
    for noise in [Noise::Normal, Noise::HeavyTailed, Noise::Skewed] {
        for (comparisons, blocks) in [
            (1, 6),
            (1, 11),
            (4, 6),
            (4, 11),
            (20, 8),
            (20, 13),
            (120, 13),
            (20, 20),
        ] {
            for (name, odd, even) in [
                ("none", 0.0, 0.0),
                ("all 10", 0.1, 0.1),
                ("half 10", 0.1, 0.0),
                ("half 3", 0.03, 0.0),
            ] {
                if comparisons == 1 && name.starts_with("half") {
                    continue;
                }
                let truth: Vec<f64> = (0..comparisons)
                    .map(|i| if i % 2 == 1 { odd } else { even })
                    .collect();
                let mut tally = Tally::default();
                let repetitions = 150_000_000 / (comparisons << (blocks.min(16) - 1));
                for seed in 0..repetitions.clamp(200, 4_000) as u64 {
                    let data = Source::new(seed, noise).family(&truth, blocks);
                    tally.add(&family::compare(&data, ALPHA, seed).unwrap(), &truth);
                }
                let of = |count: f64, all: f64| 100.0 * count / all;
                println!(
                    "{noise:?} {comparisons:3} x {blocks:2} {name:8} ({:4}) {:5.1} {:5.1} {:5.1} {:5.1} {:5.2} {:5.1} {:6.2}",
                    tally.families,
                    of(tally.false_alarm, tally.families),
                    of(tally.joint, tally.families),
                    of(tally.joint_uncut, tally.families),
                    of(tally.alone, tally.comparisons),
                    of(tally.cut, tally.comparisons),
                    of(tally.found, tally.effects),
                    of(tally.width, tally.comparisons),
                );
            }
        }
    }
}

fn power() {
    println!("comparisons, blocks, noise: share of claimed effects that are found, in %");
    for noise in [Noise::Normal, Noise::HeavyTailed] {
        for (comparisons, blocks) in [
            (1, 6),
            (1, 8),
            (1, 13),
            (10, 8),
            (10, 13),
            (120, 10),
            (120, 13),
        ] {
            let repetitions = 1_000;
            let power = noise::power_at_claim(noise, comparisons, blocks, repetitions);
            println!("{comparisons:3} {blocks:2} {noise:?} {:5.1}", 100.0 * power);
        }
    }
}

fn burst_coverage() {
    println!(
        "bursts, length, share slow, requests in a slice; quantile: 95 % intervals that hold, in %, by exceedances and by medians"
    );
    let windows = 1_000;
    for (bursts, length, share, requests) in [
        (0.0, 1.0, 0.0, 200),
        (30.0, 1.0, 0.2, 200),
        (20.0, 3.0, 0.1, 200),
        (10.0, 4.0, 0.1, 200),
        (10.0, 4.0, 0.5, 200),
        (5.0, 5.0, 0.2, 200),
        (5.0, 5.0, 0.2, 1_000),
    ] {
        let bursty = Bursty {
            bursts,
            length,
            share,
            requests,
        };
        for q in [0.5, 0.9, 0.99] {
            let new = bursty.coverage(q, windows, by_exceedances);
            let old = bursty.coverage(q, windows, by_medians);
            println!(
                "{bursts:4} {length} {share:.1} {requests:5} {q:5} {:5.1} {:5.1}",
                100.0 * new,
                100.0 * old
            );
        }
    }
}

fn meshes() {
    println!("nodes, blocks, sigma 20 %: meshes with an innocent named, in %; the slow node found");
    for noise in [Noise::Normal, Noise::HeavyTailed, Noise::Skewed] {
        for (nodes, blocks) in [(4, 5), (4, 10), (5, 5), (8, 4), (16, 4), (40, 3), (40, 10)] {
            let mesh = Mesh {
                nodes,
                blocks,
                noise,
                sigma: 0.2,
                slow_node: None,
            };
            let slow = Mesh {
                slow_node: Some(3.0),
                ..mesh
            };
            let repetitions = if nodes == 40 { 100 } else { 1_000 };
            let (innocent, _) = mesh.names(repetitions);
            let (beside, found) = slow.names(repetitions);
            println!(
                "{nodes:2} {blocks:2} {noise:?}: {innocent:4.1}; beside a slow node {beside:4.1}, found {found:5.1}"
            );
        }
    }
}

fn precision_coverage() {
    println!(
        "comparisons, first look, target: all joint intervals hold, in %; mean blocks; reached, in %"
    );
    for (comparisons, first) in [(1, 8), (5, 8), (1, 6)] {
        for target in [0.012, 0.008, 0.007] {
            let Stopped {
                holds,
                blocks,
                reached,
            } = noise::precision::stopped(comparisons, first, target, 2_000);
            println!("{comparisons} {first:2} {target:.3} {holds:5.1} {blocks:5.1} {reached:5.1}");
        }
    }
}

fn gates() {
    println!("noise, effects as multiples of the limit: not worse, worse, undecided in %; blocks");
    for noise in [Noise::Normal, Noise::HeavyTailed, Noise::Skewed] {
        let limit = limit(noise);
        for effects in [
            [0.0, 0.0],
            [0.0, -10.0],
            [0.5, 0.0],
            [1.0, 0.0],
            [1.0, 1.0],
            [1.5, 0.0],
            [2.0, 0.0],
        ] {
            let Answers {
                not_worse,
                worse,
                undecided,
                blocks,
            } = answers(noise, effects.map(|it| it * limit), limit, 2_000);
            println!(
                "{noise:?} {effects:?}: {not_worse:5.1} {worse:5.1} {undecided:5.1} {blocks:5.1}"
            );
        }
    }
}

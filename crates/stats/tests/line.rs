//! How often the interval of a slope holds the truth, and how often a straight line is
//! called bent.
//!
//! Services as people have them: none to 30,000. A block's trials share its hour, which
//! is a factor on all of them; each trial is off by 3 % of its own. Everything is
//! seeded, so these are fixed numbers, not chances.

use plumbline_stats::line::FittedLine;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const ALPHA: f64 = 0.05;
const LEVELS: [f64; 5] = [0.0, 100.0, 1_000.0, 10_000.0, 30_000.0];
const BLOCKS: usize = 10;
const REPETITIONS: u64 = 1_000;
const NOISE: f64 = 0.03;
const OF_A_BLOCK: f64 = 0.05;

/// Nanoseconds, of a first packet past iptables.
const AT_ZERO: f64 = 40_000.0;
const PER_LEVEL: f64 = 11.0;

fn straight(level: f64) -> f64 {
    AT_ZERO + PER_LEVEL * level
}

fn gaussian(rng: &mut ChaCha8Rng) -> f64 {
    let (radius, angle): (f64, f64) = (rng.random(), rng.random());
    (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

/// Noise that is far from normal: now and then a trial is disturbed, in either direction.
fn wild(rng: &mut ChaCha8Rng) -> f64 {
    let scale = if rng.random::<f64>() < 0.1 { 5.0 } else { 1.0 };
    scale * gaussian(rng)
}

/// The values of several costs in the same blocks, by level and block.
fn measured<const N: usize>(
    costs: [&dyn Fn(f64) -> f64; N],
    noise: fn(&mut ChaCha8Rng) -> f64,
    seed: u64,
) -> [FittedLine; N] {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut values = [(); N].map(|()| vec![Vec::with_capacity(BLOCKS); LEVELS.len()]);
    for _ in 0..BLOCKS {
        let hour = 1.0 + OF_A_BLOCK * gaussian(&mut rng);
        for (cost, values) in costs.iter().zip(&mut values) {
            for (level, values) in LEVELS.iter().zip(values) {
                let trial = 1.0 + NOISE * noise(&mut rng);
                values.push(Some(cost(*level) * hour * trial));
            }
        }
    }
    values.map(|values| FittedLine::new(&LEVELS, &values, 1, ALPHA, seed).expect("five levels"))
}

/// The share of repetitions for which something holds.
fn share(holds: impl Fn(u64) -> bool) -> f64 {
    let held = (0..REPETITIONS).filter(|&seed| holds(seed)).count();
    held as f64 / REPETITIONS as f64
}

#[test]
fn the_interval_of_a_slope_holds_the_truth_as_often_as_it_says() {
    for noise in [gaussian, wild] {
        let [slope, at_zero] = [PER_LEVEL, AT_ZERO].map(|truth| {
            share(|seed| {
                let [line] = measured([&straight], noise, seed);
                let found = match truth == PER_LEVEL {
                    true => line.per_level,
                    false => line.at_zero,
                };
                found.alone.contains(truth)
            })
        });
        println!("slope {slope}, at zero {at_zero}");
        // Not far above 95 % either: an interval that holds everything says nothing.
        assert!((0.93..=0.97).contains(&slope), "{slope}");
        assert!((0.93..=0.97).contains(&at_zero), "{at_zero}");
    }
}

#[test]
fn a_straight_line_is_called_bent_at_most_at_the_stated_level() {
    for noise in [gaussian, wild] {
        let alarms = share(|seed| measured([&straight], noise, seed)[0].bend_p() <= ALPHA);
        println!("called bent: {alarms}");
        assert!((0.025..=0.055).contains(&alarms), "{alarms}");
    }
}

#[test]
fn a_bend_is_found_wherever_it_is() {
    // A step at the first service, and a cache that 30,000 do not fit in.
    let step = |level: f64| straight(level) + if level > 0.0 { 4_000.0 } else { 0.0 };
    let steeper = |level: f64| straight(level) + (level - 10_000.0).max(0.0) * 2.0;
    let costs: [(&str, &dyn Fn(f64) -> f64); 2] = [("step", &step), ("steeper", &steeper)];
    for (name, cost) in costs {
        let found = share(|seed| measured([cost], gaussian, seed)[0].bend_p() <= ALPHA);
        println!("{name}: {found}");
        assert!(found >= 0.8, "{name}: {found}");
    }
}

#[test]
fn lines_cross_where_they_do_and_no_line_crosses_itself() {
    // They meet at 5,000.
    let flat = |_: f64| straight(5_000.0);
    let range = (LEVELS[0], LEVELS[4]);
    let held = share(|seed| {
        let [one, other] = measured([&straight, &flat], gaussian, seed);
        let crossing = one.crossing(&other, range, ALPHA, seed);
        crossing.is_some_and(|found| found.interval.contains(5_000.0))
    });
    println!("holds where they cross: {held}");
    assert!((0.93..=0.97).contains(&held), "{held}");
    let invented = share(|seed| {
        let [one, other] = measured([&straight, &straight], gaussian, seed);
        one.crossing(&other, range, ALPHA, seed).is_some()
    });
    println!("crosses itself: {invented}");
    assert!(invented <= 0.05, "{invented}");
}

//! How often the interval of tau holds the true one. Seeded: fixed
//! numbers, not chances.

use plumbline_stats::kendall::{PairCounts, Ranking, agreement};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const BLOCKS: usize = 12;
const NOISE: f64 = 0.05;
const REPETITIONS: u32 = 100;

fn gaussian(rng: &mut ChaCha8Rng) -> f64 {
    let (radius, angle): (f64, f64) = (rng.random(), rng.random());
    (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

/// Five networks in two tables, of which some differ by less than a block's
/// noise; the true order disagrees with the published one in places.
fn measured(truth: &[f64], rng: &mut ChaCha8Rng) -> Vec<Vec<Option<f64>>> {
    let blocks = |&centre: &f64| {
        (0..BLOCKS)
            .map(|_| Some(centre + NOISE * gaussian(rng)))
            .collect()
    };
    truth.iter().map(blocks).collect()
}

#[test]
fn the_interval_holds_the_true_tau_as_often_as_it_says() {
    let published = [vec![0.5, 0.7, 0.9, 0.9, 1.2], vec![0.7, 1.0, 1.2, 1.1, 1.5]];
    let truth = [
        vec![0.0, 0.01, 0.06, 0.03, 0.2],
        vec![0.0, 0.04, 0.02, 0.05, 0.3],
    ];
    let true_pairs: PairCounts = published
        .iter()
        .zip(&truth)
        .map(|(published, truth)| PairCounts::count(published, truth))
        .sum();
    let true_tau = true_pairs.tau_b().unwrap();
    assert!(true_tau < true_pairs.highest_tau_b().unwrap());

    let mut rng = ChaCha8Rng::seed_from_u64(20_261_121);
    let mut held = 0;
    for seed in 0..REPETITIONS {
        let tables: Vec<Ranking> = published
            .iter()
            .zip(&truth)
            .map(|(published, truth)| Ranking {
                published: published.clone(),
                measured: measured(truth, &mut rng),
            })
            .collect();
        let found = agreement(&tables, BLOCKS, 0.95, u64::from(seed)).unwrap();
        held += u32::from(found.interval.unwrap().contains(true_tau));
    }
    let coverage = f64::from(held) / f64::from(REPETITIONS);
    println!(
        "the interval held the true tau in {:.1} % of runs",
        coverage * 100.0
    );
    assert!(coverage >= 0.93, "{coverage}");
}

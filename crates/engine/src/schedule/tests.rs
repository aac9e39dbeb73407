use super::*;
use crate::window::whole;

fn arrivals(arrival: Arrival, seed: u64, worker: usize, workers: usize, n: usize) -> Vec<u64> {
    let mut schedule = Schedule::new(arrival, seed, worker, workers, whole(1_000, 1, 0)).unwrap();
    (0..n)
        .map(|_| {
            let at = schedule.next();
            schedule.advance();
            at
        })
        .collect()
}

fn gaps(at: &[u64]) -> Vec<f64> {
    at.windows(2).map(|w| (w[1] - w[0]) as f64).collect()
}

#[test]
fn constant_gaps_are_equal_and_do_not_drift() {
    // 7 kHz has a gap that no integer holds.
    let at = arrivals(Arrival::Constant { rate: 7_000.0 }, 0, 0, 1, 700_001);
    assert_eq!(at[0], 1_000);
    assert_eq!(*at.last().unwrap(), 1_000 + 100_000_000_000);
    let gap = 1e9 / 7_000.0;
    assert!(gaps(&at).iter().all(|g| (g - gap).abs() <= 1.0));
}

#[test]
fn workers_share_a_constant_process_without_bunching() {
    let process = Arrival::Constant { rate: 10_000.0 };
    let mut all: Vec<u64> = (0..3)
        .flat_map(|worker| arrivals(process, 0, worker, 3, 1_000))
        .collect();
    all.sort_unstable();
    assert!(gaps(&all).iter().all(|&g| g == 100_000.0));
}

/// The check of L-7 on gaps with a known mean: Anderson–Darling stays below
/// twice the 1 % critical value (3.857 for a fully specified law), and the
/// Kolmogorov–Smirnov distance is at most 0.02.
fn look_exponential(mut gaps: Vec<f64>, mean: f64) -> bool {
    gaps.sort_by(f64::total_cmp);
    let n = gaps.len() as f64;
    let law: Vec<f64> = gaps.iter().map(|g| 1.0 - (-g / mean).exp()).collect();
    let mut sum = 0.0;
    let mut distance: f64 = 0.0;
    for (i, &f) in law.iter().enumerate() {
        let mirrored = law[law.len() - 1 - i];
        sum += (2 * i + 1) as f64 * (f.ln() + (1.0 - mirrored).ln());
        let (below, above) = (i as f64 / n, (i + 1) as f64 / n);
        distance = distance.max((f - below).abs()).max((above - f).abs());
    }
    let anderson_darling = -n - sum / n;
    anderson_darling < 2.0 * 3.857 && distance <= 0.02
}

#[test]
fn poisson_gaps_are_exponential() {
    let process = Arrival::Poisson { rate: 1_000.0 };
    for seed in 0..5 {
        let gaps = gaps(&arrivals(process, seed, 0, 1, 5_001));
        assert!(look_exponential(gaps, 1e6), "seed {seed}");
    }
}

/// L-9: the check above must be able to fail.
#[test]
fn other_gaps_do_not_look_exponential() {
    let process = Arrival::Poisson { rate: 1_000.0 };
    let real = gaps(&arrivals(process, 0, 0, 1, 5_001));
    assert!(!look_exponential(vec![1e6; 5_000], 1e6), "equal gaps");
    let slow = real.iter().map(|g| g * 1.1).collect();
    assert!(!look_exponential(slow, 1e6), "a rate 10 % too low");
    let bunched = real.iter().map(|g| g.min(1.5e6)).collect();
    assert!(!look_exponential(bunched, 1e6), "no long gaps");
}

#[test]
fn a_seed_fixes_the_process_and_workers_differ() {
    let process = Arrival::Poisson { rate: 1e5 };
    let first = arrivals(process, 42, 0, 2, 100);
    assert_eq!(first, arrivals(process, 42, 0, 2, 100));
    assert_ne!(first, arrivals(process, 42, 1, 2, 100));
    assert_ne!(first, arrivals(process, 43, 0, 2, 100));
}

#[test]
fn a_closed_loop_has_no_schedule() {
    assert!(Schedule::new(Arrival::Closed, 0, 0, 1, whole(0, 1, 0)).is_none());
}

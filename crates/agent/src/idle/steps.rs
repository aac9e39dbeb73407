//! Idle time where the kernel only has a counter of coarse steps: from the moments at
//! which it moves, which are known more exactly than what it shows.

use std::io;
use std::sync::atomic::AtomicBool;

use plumbline_experiment::Slice;
use plumbline_protocol::IdleTime;
use plumbline_sys::clock::{now_ns, sleep_unless};
use plumbline_sys::counters::IdleCounter;
use plumbline_sys::cpu;

/// How often the counter is looked at, nanoseconds.
const LOOK_NS: u64 = 1_000_000;
/// For how long it is looked at after the last slice: two steps of a machine whose one
/// CPU is idle.
const MARGIN_NS: u64 = 20_000_000;
/// Rounds in which rates come from shares, and shares from rates.
const ROUNDS: usize = 20;

/// The counter moved.
#[derive(Clone, Copy)]
struct Moved {
    /// When, after the start.
    at_ns: u64,
    /// To what.
    idle_ns: u64,
}

/// A part of the course in which one member has the machine.
struct Segment {
    from_ns: u64,
    to_ns: u64,
    member: usize,
    is_recorded: bool,
}

impl Segment {
    /// How much of it lies between two moments, nanoseconds.
    fn overlap_ns(&self, from_ns: u64, to_ns: u64) -> u64 {
        let to_ns = self.to_ns.min(to_ns);
        to_ns.saturating_sub(self.from_ns.max(from_ns))
    }
}

/// Idle time of `cpus` CPUs for each member, and last from the first edge to the last.
/// Returns early when `stop` becomes true.
///
/// # Errors
///
/// A counter that cannot be read.
pub(super) fn watch(
    start_ns: u64,
    cpus: usize,
    (members, course): (usize, &[(usize, Slice)]),
    stop: &AtomicBool,
) -> io::Result<Vec<IdleTime>> {
    let segments = segments(members, course);
    let to_ns = segments.last().map_or(0, |it| it.to_ns);
    let steps = look(start_ns, to_ns + MARGIN_NS, stop)?;
    let idle_ns = share(members, &segments, &steps, cpus);
    let mut times = vec![IdleTime::default(); members + 1];
    for (segment, idle_ns) in segments.iter().zip(idle_ns) {
        let capacity_ns = (segment.to_ns - segment.from_ns) * cpus as u64;
        let mut add = |to: usize| {
            times[to].capacity_ns += capacity_ns;
            times[to].idle_ns += idle_ns as u64;
        };
        add(members);
        if segment.is_recorded {
            add(segment.member);
        }
    }
    Ok(times)
}

/// The course without gaps, from the first edge to the last. What is not recorded is
/// nobody's but for the first part of a slice, in which its member already sends.
fn segments(members: usize, course: &[(usize, Slice)]) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut done_ns = course.first().map_or(0, |(_, slice)| slice.open_ns);
    for (member, slice) in course {
        let begin_ns = slice.begin_ns.max(done_ns);
        for (from_ns, to_ns, member, is_recorded) in [
            (done_ns, begin_ns, members, false),
            (begin_ns, slice.open_ns, *member, false),
            (slice.open_ns, slice.end_ns, *member, true),
        ] {
            if from_ns < to_ns {
                segments.push(Segment {
                    from_ns,
                    to_ns,
                    member,
                    is_recorded,
                });
            }
        }
        done_ns = slice.end_ns;
    }
    segments
}

/// When the counter moved, until `to_ns` after the start.
fn look(start_ns: u64, to_ns: u64, stop: &AtomicBool) -> io::Result<Vec<Moved>> {
    let counter = IdleCounter::open()?;
    let _ = cpu::set_timer_slack_ns(1);
    sleep_unless(stop, start_ns);
    let mut steps: Vec<Moved> = Vec::new();
    let mut before = (now_ns(), counter.read_ns()?);
    while before.0 < start_ns + to_ns && sleep_unless(stop, before.0 + LOOK_NS) {
        let now = (now_ns(), counter.read_ns()?);
        if now.1 > before.1 {
            // Of several steps the last one, if they were evenly apart.
            let count = (now.1 - before.1).div_ceil(IdleCounter::STEP_NS);
            let at_ns = now.0 - (now.0 - before.0) / (2 * count);
            steps.push(Moved {
                at_ns: at_ns.saturating_sub(start_ns),
                idle_ns: now.1,
            });
        }
        before = now;
    }
    Ok(steps)
}

/// The idle time of each segment. Between two steps it is divided by the rates at which
/// their members are idle, and these follow from what their recorded segments got:
/// the most likely rates, by expectation maximisation (Dempster, Laird and Rubin 1977).
fn share(members: usize, segments: &[Segment], steps: &[Moved], cpus: usize) -> Vec<f64> {
    let mut rates = vec![cpus as f64; members + 1];
    let mut shares = Vec::new();
    for _ in 0..ROUNDS {
        shares = divide(segments, steps, &rates);
        rates = rates_of(members, segments, &shares, cpus);
    }
    shares
}

/// Idle time of each segment, where members are idle at these rates (CPUs).
fn divide(segments: &[Segment], steps: &[Moved], rates: &[f64]) -> Vec<f64> {
    let mut shares = vec![0.0; segments.len()];
    let mut covered_ns = vec![0; segments.len()];
    let mut first = 0;
    for pair in steps.windows(2) {
        let (from_ns, to_ns) = (pair[0].at_ns, pair[1].at_ns);
        while segments.get(first).is_some_and(|it| it.to_ns <= from_ns) {
            first += 1;
        }
        let touched = (first..segments.len()).take_while(|&it| segments[it].from_ns < to_ns);
        let touched: Vec<(usize, u64)> = touched
            .map(|it| (it, segments[it].overlap_ns(from_ns, to_ns)))
            .collect();
        let inside_ns: u64 = touched.iter().map(|(_, length_ns)| length_ns).sum();
        let weight =
            |&(it, length_ns): &(usize, u64)| length_ns as f64 * rates[segments[it].member];
        let all: f64 = touched.iter().map(weight).sum();
        if all <= 0.0 {
            continue;
        }
        // Before the first edge and after the last one nobody is looked at.
        let length_ns = (to_ns - from_ns).max(1);
        let idle_ns = (pair[1].idle_ns - pair[0].idle_ns) as f64;
        let idle_ns = idle_ns * inside_ns as f64 / length_ns as f64;
        for one in &touched {
            shares[one.0] += idle_ns * weight(one) / all;
            covered_ns[one.0] += one.1;
        }
    }
    // What lies before the first step or after the last one is as the rest of its member.
    for ((segment, share), covered_ns) in segments.iter().zip(&mut shares).zip(covered_ns) {
        let missing_ns = (segment.to_ns - segment.from_ns).saturating_sub(covered_ns);
        *share += missing_ns as f64 * rates[segment.member];
    }
    shares
}

/// How many CPUs are idle while each member has the machine; the last is for nobody.
fn rates_of(members: usize, segments: &[Segment], shares: &[f64], cpus: usize) -> Vec<f64> {
    let mut sums = vec![(0.0, 0.0); members + 1];
    for (segment, share) in segments.iter().zip(shares) {
        if segment.is_recorded || segment.member == members {
            let sum = &mut sums[segment.member];
            sum.0 += share;
            sum.1 += (segment.to_ns - segment.from_ns) as f64;
        }
    }
    let rate = |(idle_ns, length_ns): (f64, f64)| match length_ns {
        0.0 => cpus as f64,
        _ => (idle_ns / length_ns).min(cpus as f64),
    };
    sums.into_iter().map(rate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Members whose slices of 25 ms follow one another in turn, with what would be seen
    /// of a counter while each is idle at its rate; the last is in nobody's slice.
    fn course(members: usize, turns: usize) -> Vec<(usize, Slice)> {
        let slice = |number: usize| {
            let begin_ns = number as u64 * 25 * MS;
            let slice = Slice {
                begin_ns,
                open_ns: begin_ns + 3 * MS,
                end_ns: begin_ns + 25 * MS,
            };
            // Backwards in every second rotation, as no member follows one other only.
            let (turn, place) = (number / members, number % members);
            let member = if turn % 2 == 0 {
                place
            } else {
                members - 1 - place
            };
            (member, slice)
        };
        (0..members * turns).map(slice).collect()
    }

    /// The steps of a counter, as looking every millisecond finds them, where so many CPUs
    /// are idle in each.
    fn steps(segments: &[Segment], mut idle: impl FnMut(Option<&Segment>) -> f64) -> Vec<Moved> {
        let to_ns = segments.last().unwrap().to_ns;
        let mut steps = Vec::new();
        let (mut idle_ns, mut shown) = (0.0, 0);
        for at_ns in (0..to_ns + 20 * MS).step_by(LOOK_NS as usize) {
            let now = segments
                .iter()
                .find(|it| it.overlap_ns(at_ns, at_ns + 1) > 0);
            idle_ns += idle(now) * LOOK_NS as f64;
            let step = (idle_ns / IdleCounter::STEP_NS as f64) as u64;
            if step > shown {
                shown = step;
                steps.push(Moved {
                    at_ns: at_ns + LOOK_NS / 2,
                    idle_ns: step * IdleCounter::STEP_NS,
                });
            }
        }
        steps
    }

    fn rates_found(rates: &[f64], turns: usize) -> Vec<f64> {
        let members = rates.len() - 1;
        let course = course(members, turns);
        let segments = segments(members, &course);
        let steps = steps(&segments, |it| rates[it.map_or(members, |it| it.member)]);
        let shares = share(members, &segments, &steps, 2);
        rates_of(members, &segments, &shares, 2)
    }

    #[test]
    fn rates_come_out_as_they_went_in_however_coarse_the_steps_are() {
        for rates in [
            [1.5, 1.6, 1.95, 1.9],
            // So busy that no step ends in many of the slices.
            [0.2, 0.15, 1.95, 1.9],
        ] {
            let found = rates_found(&rates, 40);
            for (found, truth) in found.iter().zip(rates).take(3) {
                assert!((found - truth).abs() < 0.03, "{found} for {truth}");
            }
        }
    }

    /// Numbers from 0 to 1 that look like chance (SplitMix64).
    fn chances() -> impl FnMut() -> f64 {
        let mut state = 1u64;
        move || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (mixed ^ (mixed >> 31)) as f64 / u64::MAX as f64
        }
    }

    /// No interval has a least width for it, so what dividing steps adds has to be noise
    /// that differs from block to block and is zero in the mean.
    #[test]
    fn what_steps_get_wrong_is_chance_anew_in_each_block() {
        const BLOCKS: usize = 200;
        let rates = [1.5, 1.6, 1.95, 1.9];
        let members = rates.len() - 1;
        let course = course(members, 12);
        let segments = segments(members, &course);
        let mut chance = chances();
        // Of each block, in CPUs, for each member.
        let mut errors = vec![Vec::new(); members];
        for _ in 0..BLOCKS {
            let mut truth = vec![0.0; members];
            // Each CPU is busy or idle in each millisecond by itself.
            let steps = steps(&segments, |now| {
                let rate = rates[now.map_or(members, |it| it.member)];
                let both = [chance(), chance()].map(|it| f64::from(it < rate / 2.0));
                let idle: f64 = both.iter().sum();
                if let Some(one) = now.filter(|it| it.is_recorded) {
                    truth[one.member] += idle / (12.0 * 22.0);
                }
                idle
            });
            let shares = share(members, &segments, &steps, 2);
            let found = rates_of(members, &segments, &shares, 2);
            for ((errors, found), truth) in errors.iter_mut().zip(found).zip(truth) {
                errors.push(found - truth);
            }
        }
        for errors in errors {
            let mean = errors.iter().sum::<f64>() / BLOCKS as f64;
            let product = |lag: usize| {
                let pairs = errors.iter().zip(&errors[lag..]);
                pairs.map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / BLOCKS as f64
            };
            let spread = product(0).sqrt();
            assert!(spread < 0.05, "spread {spread} CPUs");
            assert!(mean.abs() < 0.01, "mean {mean} CPUs");
            // Of as many independent ones, 0.14 is exceeded once in twenty.
            let correlation = product(1) / product(0);
            assert!(correlation.abs() < 0.2, "correlation {correlation}");
        }
    }

    #[test]
    fn a_member_of_which_no_step_tells_is_as_idle_as_all() {
        let course = course(1, 1);
        let segments = segments(1, &course);
        assert_eq!(share(1, &segments, &[], 2), [22.0 * MS as f64 * 2.0]);
    }

    #[test]
    fn the_course_is_divided_without_gaps() {
        let course = course(2, 2);
        let segments = segments(2, &course);
        assert_eq!(
            segments.len(),
            7,
            "the first slice begins when it is recorded"
        );
        assert!(
            segments
                .windows(2)
                .all(|pair| pair[0].to_ns == pair[1].from_ns)
        );
        let recorded = segments.iter().filter(|it| it.is_recorded);
        assert_eq!(recorded.count(), 4);
    }

    #[test]
    fn this_machine_is_watched_in_each_slice() {
        let members = 2;
        let course = course(members, 2);
        let never = AtomicBool::new(false);
        let times = watch(now_ns() + MARGIN_NS, 2, (members, &course), &never).unwrap();
        assert_eq!(times.len(), members + 1);
        assert_eq!(times[0].capacity_ns, 2 * 2 * 22 * MS);
        assert_eq!(times[members].capacity_ns, 2 * (4 * 25 - 3) * MS);
    }
}

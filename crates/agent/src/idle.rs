//! How long the CPUs were idle in the slices of those that take turns.

mod steps;

use std::io;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use plumbline_experiment::Slice;
use plumbline_protocol::{IdleTime, MachineGains, WatchOrder, Watched};
use plumbline_record::IdleSample;
use plumbline_sys::clock::{now_ns, sleep_unless};
use plumbline_sys::counters::{self, CpuTotals, IdleClock};
use plumbline_sys::cpu;

use crate::meter::MachineMeter;

/// What the CPUs worked by the ticks over what they worked by the finer count, as far as
/// the difference can be interrupts that met an idle CPU.
const EXPLAINED: RangeInclusive<f64> = 0.75..=1.5;
/// The ticks of one CPU at both ends.
const TICKS_NS: u64 = 20_000_000;
/// The work for which these ticks are few, as a multiple of them.
const FEW: u64 = 10;

/// One CPU at one moment.
struct IdleReading {
    at_ns: u64,
    idle_ns: u64,
}

/// Adds what was between two readings.
fn add(time: &mut IdleTime, from: &IdleReading, to: &IdleReading) {
    time.capacity_ns += to.at_ns.saturating_sub(from.at_ns);
    time.idle_ns += to.idle_ns.saturating_sub(from.idle_ns);
}

/// The slices of all members in time order, with the number of the member.
type Course = [(usize, Slice)];

/// Watches the CPUs in the recorded slices of all members of a rotation, of whom the
/// last does not send. Returns early when `stop` becomes true.
///
/// A thread on each CPU wakes at the edges of the slices. That ends the idle state of
/// its CPU, and what the kernel says about it is up to date. Where the kernel counts no
/// idle states, one thread looks when the coarse counter of all CPUs moves.
///
/// # Errors
///
/// Counters that cannot be read.
pub(crate) fn watch(order: &WatchOrder, stop: &AtomicBool) -> io::Result<Watched> {
    let (start_ns, members) = (order.start_ns, order.members.len());
    let course = course(&order.members);
    let Some((from_ns, to_ns)) = span(&course) else {
        return Ok(gained(Vec::new(), None));
    };
    let cpus = counters::cpu()?.cpus;
    let whole = MachineMeter::default();
    let clocks = cpus.iter().map(|it| {
        let clock = IdleClock::of(it.number, whole.spinners());
        clock.map(|clock| (it.number, clock))
    });
    let clocks: io::Result<Vec<(u32, IdleClock)>> = clocks.collect();
    thread::scope(|scope| {
        let threads: Vec<_> = if let Ok(clocks) = clocks {
            let one = |it: (u32, IdleClock)| {
                let course = &course;
                scope.spawn(move || watch_one(it, start_ns, (members, course), stop))
            };
            clocks.into_iter().map(one).collect()
        } else {
            let (count, course) = (cpus.len(), &course);
            vec![scope.spawn(move || steps::watch(start_ns, count, (members, course), stop))]
        };
        let first_metered = if order.all { 0 } else { members - 1 };
        let mut meters = vec![whole.clone(); members - first_metered];
        sleep_unless(stop, start_ns + from_ns);
        let first = whole.totals()?;
        let metered = course
            .iter()
            .filter_map(|(member, slice)| Some((member.checked_sub(first_metered)?, slice)));
        meter(start_ns, metered, &mut meters, stop)?;
        sleep_unless(stop, start_ns + to_ns);
        let last = whole.totals()?;
        let watched = threads.into_iter().map(|thread| {
            let watched = thread.join();
            watched.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        // Where one CPU cannot be watched, there is no total.
        let watched: io::Result<Vec<Vec<IdleTime>>> = watched.collect();
        let idle = watched.ok().and_then(|all| agreeing(all, &first, &last));
        Ok(gained(meters, idle))
    })
}

/// What the meters of the last members gained, as exactly as is known.
fn gained(meters: Vec<MachineMeter>, idle: Option<Vec<IdleTime>>) -> Watched {
    let exact = |number: usize| {
        let idle = idle.as_ref()?;
        idle.get(idle.len() - meters.len() + number)
    };
    let gains = meters.iter().enumerate().map(|(number, meter)| {
        let mut machine = meter.cpu();
        if let Some(idle) = exact(number) {
            idle.correct(&mut machine);
        }
        MachineGains {
            machine,
            softnet: meter.softnet(),
            ksoftirqd_ns: meter.ksoftirqd_ns(),
        }
    });
    let mut members: Vec<MachineGains> = gains.collect();
    let rest = members.pop().unwrap_or_default().machine;
    Watched {
        rest: IdleSample {
            busy_ns: rest.busy_ns,
            capacity_ns: rest.capacity_ns,
        },
        members,
        idle,
    }
}

fn course(members: &[Vec<Slice>]) -> Vec<(usize, Slice)> {
    let of_member = |(number, slices): (usize, &Vec<Slice>)| {
        let recorded = slices.iter().filter(|it| it.recorded_ns() > 0);
        recorded.map(|it| (number, *it)).collect::<Vec<_>>()
    };
    let mut course: Vec<_> = members.iter().enumerate().flat_map(of_member).collect();
    course.sort_unstable_by_key(|(_, slice)| slice.open_ns);
    course
}

fn span(course: &Course) -> Option<(u64, u64)> {
    Some((course.first()?.1.open_ns, course.last()?.1.end_ns))
}

/// Reads the machine's counters at the edges of slices, each by the meter of its member.
fn meter<'a>(
    start_ns: u64,
    course: impl Iterator<Item = (usize, &'a Slice)>,
    meters: &mut [MachineMeter],
    stop: &AtomicBool,
) -> io::Result<()> {
    for (member, slice) in course {
        sleep_unless(stop, start_ns + slice.open_ns);
        meters[member].opens()?;
        sleep_unless(stop, start_ns + slice.end_ns);
        meters[member].closes()?;
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(())
}

/// Idle time of one CPU for each member, and last from the first edge to the last.
fn watch_one(
    (cpu, clock): (u32, IdleClock),
    start_ns: u64,
    (members, course): (usize, &Course),
    stop: &AtomicBool,
) -> io::Result<Vec<IdleTime>> {
    cpu::pin_thread(cpu as usize)?;
    // Woken 50 µs late otherwise, which the part that is not recorded can bear.
    let _ = cpu::set_timer_slack_ns(1);
    let read = |slice_ns: u64| -> io::Result<IdleReading> {
        sleep_unless(stop, start_ns + slice_ns);
        let at_ns = now_ns();
        let idle_ns = clock.read_ns()?;
        Ok(IdleReading { at_ns, idle_ns })
    };
    let mut times = vec![IdleTime::default(); members + 1];
    let mut first = None;
    for (member, slice) in course {
        let opened = read(slice.open_ns)?;
        let closed = read(slice.end_ns)?;
        add(&mut times[*member], &opened, &closed);
        let first = first.get_or_insert(opened);
        times[members] = IdleTime::default();
        add(&mut times[members], first, &closed);
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(times)
}

/// The sums over what was watched for each member, with as much work over the whole time as the
/// ticks say, and as much steal: these know how much there was, and the finer count when.
/// `None` where the two are too far apart to be about the same.
fn agreeing(
    cpus: Vec<Vec<IdleTime>>,
    first: &CpuTotals,
    last: &CpuTotals,
) -> Option<Vec<IdleTime>> {
    let mut sums = cpus
        .first()?
        .iter()
        .map(|_| IdleTime::default())
        .collect::<Vec<_>>();
    for times in &cpus {
        for (sum, time) in sums.iter_mut().zip(times) {
            sum.capacity_ns += time.capacity_ns;
            sum.idle_ns += time.idle_ns;
        }
    }
    let whole = sums.pop()?;
    let stolen = |totals: &CpuTotals| totals.cpus.iter().map(|it| it.steal_ns).sum::<u64>();
    let stolen_ns = stolen(last).saturating_sub(stolen(first)) as f64;
    // Only who works can be kept from it.
    let stolen_share = stolen_ns / whole.worked_ns().max(1) as f64;
    for sum in &mut sums {
        sum.stolen_ns = (sum.worked_ns() as f64 * stolen_share) as u64;
    }
    let away = |totals: &CpuTotals| {
        let of_one = |it: &counters::OneCpu| it.idle_ns + it.iowait_ns;
        totals.cpus.iter().map(of_one).sum::<u64>()
    };
    let ticks_ns = away(last).saturating_sub(away(first));
    let by_ticks_ns = whole.capacity_ns.saturating_sub(ticks_ns);
    let rounding_ns = TICKS_NS * last.cpus.len() as u64;
    if whole.worked_ns().max(by_ticks_ns) < FEW * rounding_ns {
        let is_alike = whole.worked_ns().abs_diff(by_ticks_ns) <= FEW * rounding_ns / 2;
        return is_alike.then_some(sums);
    }
    let ratio = by_ticks_ns as f64 / whole.worked_ns() as f64;
    let scaled = |sum: IdleTime| {
        let worked_ns = (sum.worked_ns() as f64 * ratio) as u64;
        IdleTime {
            idle_ns: sum.capacity_ns.saturating_sub(worked_ns),
            ..sum
        }
    };
    let is_explained = EXPLAINED.contains(&ratio);
    is_explained.then(|| sums.into_iter().map(scaled).collect())
}

#[cfg(test)]
mod tests {
    use plumbline_sys::counters::OneCpu;

    use super::*;

    const MS: u64 = 1_000_000;

    fn time(capacity_ms: u64, idle_ms: u64) -> IdleTime {
        IdleTime {
            capacity_ns: capacity_ms * MS,
            idle_ns: idle_ms * MS,
            stolen_ns: 0,
        }
    }

    fn ticks(idle_ms: [u64; 2]) -> CpuTotals {
        let one = |(number, idle_ms): (usize, u64)| OneCpu {
            number: number as u32,
            idle_ns: idle_ms * MS,
            ..OneCpu::default()
        };
        CpuTotals {
            at_ns: 0,
            cpus: idle_ms.into_iter().enumerate().map(one).collect(),
        }
    }

    #[test]
    fn cpus_add_up_to_as_much_work_as_the_ticks_count() {
        let cpus = vec![
            vec![time(400, 100), time(400, 300), time(2000, 1000)],
            vec![time(400, 100), time(400, 350), time(2000, 1000)],
        ];
        let first = ticks([10, 20]);
        let sums = agreeing(cpus.clone(), &first, &ticks([1010, 1020])).unwrap();
        assert_eq!(sums, [time(800, 200), time(800, 650)]);
        // Interrupts that met an idle CPU: a tenth of what was worked.
        let sums = agreeing(cpus.clone(), &first, &ticks([910, 920])).unwrap();
        assert_eq!(sums, [time(800, 140), time(800, 635)]);
        // Twice as much cannot be interrupts.
        assert_eq!(agreeing(cpus, &first, &ticks([10, 20])), None);
        assert_eq!(agreeing(Vec::new(), &first, &ticks([10, 20])), None);
    }

    #[test]
    fn what_was_stolen_is_shared_out_by_what_was_not_idle() {
        let cpus = vec![
            vec![time(400, 100), time(400, 300), time(2000, 1000)],
            vec![time(400, 100), time(400, 400), time(2000, 1000)],
        ];
        let mut last = ticks([1010, 1020]);
        // Two ticks in all, of which no slice would see a fifth.
        (last.cpus[0].steal_ns, last.cpus[1].steal_ns) = (10 * MS, 10 * MS);
        let sums = agreeing(cpus, &ticks([10, 20]), &last).unwrap();
        let stolen: Vec<u64> = sums.iter().map(|it| it.stolen_ns / 100_000).collect();
        assert_eq!(stolen, [60, 10], "6 and 1 ms of 20");
    }

    #[test]
    fn where_little_was_worked_the_ticks_are_too_coarse_to_correct_anything() {
        let cpus = vec![vec![time(400, 390), time(1000, 970)]];
        let first = ticks([0, 0]);
        let sums = agreeing(cpus.clone(), &first, &ticks([450, 500])).unwrap();
        assert_eq!(sums, [time(400, 390)]);
        assert_eq!(agreeing(cpus, &first, &ticks([300, 400])), None);
    }

    #[test]
    fn members_are_watched_in_the_order_of_their_slices() {
        let slice = |open_ns| Slice {
            begin_ns: open_ns - 1,
            open_ns,
            end_ns: open_ns + 5,
        };
        let unrecorded = Slice {
            begin_ns: 0,
            open_ns: 1,
            end_ns: 1,
        };
        let members = [vec![unrecorded, slice(10)], vec![slice(2)], vec![slice(20)]];
        let course = course(&members);
        let order: Vec<usize> = course.iter().map(|(member, _)| *member).collect();
        assert_eq!(order, [1, 0, 2]);
        assert_eq!(span(&course), Some((2, 25)));
        assert_eq!(span(&[]), None);
    }

    fn order(members: Vec<Vec<Slice>>, all: bool) -> WatchOrder {
        WatchOrder {
            start_ns: now_ns() + MS,
            members,
            all,
        }
    }

    #[test]
    fn a_watch_ends_when_it_is_stopped() {
        let far = Slice {
            begin_ns: 0,
            open_ns: 3_600_000 * MS,
            end_ns: 3_600_005 * MS,
        };
        let stopped = AtomicBool::new(true);
        watch(&order(vec![vec![far]], true), &stopped).unwrap();
    }

    #[test]
    fn each_member_is_watched_on_this_machine() {
        let slice = |number: u64| Slice {
            begin_ns: number * 5 * MS,
            open_ns: number * 5 * MS + MS,
            end_ns: number * 5 * MS + 5 * MS,
        };
        let members = || vec![vec![slice(0), slice(3)], vec![slice(1), slice(2)]];
        let never = AtomicBool::new(false);
        for (all, metered) in [(false, 0), (true, 1)] {
            let watched = watch(&order(members(), all), &never).unwrap();
            assert!(watched.rest.capacity_ns > 0);
            assert!(watched.idle.is_none_or(|times| times.len() == 2));
            assert_eq!(watched.members.len(), metered);
            let is_metered = |it: &MachineGains| it.machine.capacity_ns > 0;
            assert!(watched.members.iter().all(is_metered));
        }
        let nobody = watch(&order(Vec::new(), true), &never).unwrap();
        assert_eq!(nobody.rest, IdleSample::default());
    }

    #[test]
    fn what_is_known_more_exactly_goes_to_the_members_that_were_metered() {
        let idle = vec![time(800, 200), time(800, 300), time(800, 790)];
        let busy = |watched: &Watched| {
            let members = watched.members.iter().map(|it| it.machine.busy_ns / MS);
            (members.collect::<Vec<_>>(), watched.rest.busy_ns / MS)
        };
        let meters = |count| vec![MachineMeter::default(); count];
        let all = gained(meters(3), Some(idle.clone()));
        assert_eq!(busy(&all), (vec![600, 500], 10));
        let only_rest = gained(meters(1), Some(idle));
        assert_eq!(busy(&only_rest), (vec![], 10));
        assert_eq!(busy(&gained(meters(2), None)), (vec![0], 0));
    }
}

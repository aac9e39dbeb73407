//! D2: how late the requests of a load may be sent. A trial's own latency has no say in it
//! (C-20): a share of it would void a fast network more often than a slow one.

use std::collections::BTreeMap;

use plumbline_experiment::{Treatment, TreatmentId};
use plumbline_record::{GateFailure, Histogram, LoadResult, Observation, Warning};

use crate::self_check::{self, LagLimits};
use crate::thresholds::Thresholds;

/// A treatment that took turns, and what was seen of it; `None` where its trial failed.
pub(crate) type TurnSeen<'a> = (&'a Treatment, Option<&'a Observation>);

/// What trials have shown so far, and those are held to that are compared with them and had
/// a window of their own, or took turns without them. Of each treatment on each pair that
/// the plan numbers.
#[derive(Default)]
pub(crate) struct Lateness {
    allowed: BTreeMap<(TreatmentId, Option<usize>), LagLimits>,
    /// By the last trial of all.
    last: Option<LagLimits>,
    /// By those that take turns now.
    in_turns: BTreeMap<TreatmentId, LagLimits>,
}

impl Lateness {
    /// Judges a trial by the last one of its baseline on the same pair; by the one before it
    /// where it has no baseline. Until there is one, by the last trial of any, and the first
    /// of all by itself.
    pub(crate) fn judge(
        &self,
        treatment: &Treatment,
        pair: Option<usize>,
        seen: &Observation,
        limits: &Thresholds,
    ) -> Option<GateFailure> {
        let load = held_load(treatment, seen)?;
        self.allowed(treatment, pair, load, limits).late(load)
    }

    /// Whether a trial that counts was sent so late that its p99 does not, by the same
    /// trial as [`judge`](Self::judge) goes by; beside a neighbour by itself, for whoever
    /// waits for a CPU is late, and its baseline waits for none.
    pub(crate) fn late_tail(
        &self,
        treatment: &Treatment,
        pair: Option<usize>,
        seen: &Observation,
        limits: &Thresholds,
    ) -> Option<Warning> {
        let load = timed_load(treatment, seen)?;
        let allowed = match is_alone(treatment) {
            true => self.allowed(treatment, pair, load, limits),
            false => LagLimits::new(&load.latency, limits),
        };
        allowed.late_tail(load)
    }

    fn allowed(
        &self,
        treatment: &Treatment,
        pair: Option<usize>,
        load: &LoadResult,
        limits: &Thresholds,
    ) -> LagLimits {
        let reference = treatment.baseline.unwrap_or(treatment.id);
        let allowed = self.in_turns.get(&reference);
        let allowed = allowed.or_else(|| self.allowed.get(&(reference, pair)));
        let own = || LagLimits::new(&load.latency, limits);
        allowed.or(self.last.as_ref()).copied().unwrap_or_else(own)
    }

    /// Judges treatments that took turns, by the latency of the baseline of each in the same
    /// turns; where that failed, by what is always allowed. A baseline is held to itself: when
    /// it fails, all are repeated. Whose baseline is in other turns, or had a window of its
    /// own, is held to what it would be in one too. Until [`end_turns`](Self::end_turns).
    pub(super) fn judge_turns(
        &mut self,
        members: &[TurnSeen<'_>],
        limits: &Thresholds,
    ) -> Vec<Option<GateFailure>> {
        let nothing = Histogram::new();
        let allowed = |seen: Option<&Observation>| {
            let load = seen.and_then(Observation::load);
            LagLimits::new(load.map_or(&nothing, |it| &it.load.latency), limits)
        };
        let in_turns = members.iter();
        let in_turns = in_turns.map(|(treatment, seen)| (treatment.id, allowed(*seen)));
        self.in_turns = in_turns.collect();
        let late = |&(treatment, seen): &TurnSeen<'_>| self.judge(treatment, None, seen?, limits);
        members.iter().map(late).collect()
    }

    /// What comes next has its baseline elsewhere.
    pub(crate) fn end_turns(&mut self) {
        self.in_turns.clear();
    }

    /// Notes a trial that fails no other gate. Whether it counts is no matter: one that was
    /// later than its predecessor allowed, but not for its own latency, shows that the
    /// place has become slower, and what comes next is held to that. One without a latency
    /// shows nothing.
    pub(crate) fn note(
        &mut self,
        treatment: &Treatment,
        pair: Option<usize>,
        seen: &Observation,
        limits: &Thresholds,
    ) {
        let load = seen.load().map(|it| &it.load);
        let Some(load) = load.filter(|it| !it.latency.is_empty()) else {
            return;
        };
        let is_held = held_load(treatment, seen).is_some();
        if !is_held || self_check::send_lag(load, limits).is_none() {
            let allowed = LagLimits::new(&load.latency, limits);
            self.allowed.insert((treatment.id, pair), allowed);
            self.last = Some(allowed);
        }
    }
}

/// The load of a trial that has a schedule to keep. Whoever shares CPUs with a neighbour is
/// late for that, and that is what is asked.
fn held_load<'a>(treatment: &Treatment, seen: &'a Observation) -> Option<&'a LoadResult> {
    timed_load(treatment, seen).filter(|_| is_alone(treatment))
}

/// The load of a trial that has a schedule, and a latency that being late would spoil:
/// datagrams have none, nor has a load of which nothing was answered.
fn timed_load<'a>(treatment: &Treatment, seen: &'a Observation) -> Option<&'a LoadResult> {
    treatment.task.load()?.arrival.rate()?;
    let load = &seen.load()?.load;
    (!load.latency.is_empty()).then_some(load)
}

fn is_alone(treatment: &Treatment) -> bool {
    treatment.scene.neighbours.is_none()
}

#[cfg(test)]
mod tests {
    use plumbline_experiment::Arrival;

    use super::*;
    use crate::planted::{MS, healthy, histogram, plan, seen};

    /// A trial of this latency, sent so late, nanoseconds.
    fn trial(latency_ns: u64, lag_ns: u64) -> Observation {
        let mut planted = healthy();
        planted.load.load.latency = histogram([latency_ns; 5000]);
        planted.load.load.generator_lag = histogram([lag_ns; 5000]);
        seen(planted)
    }

    /// Baseline and treatment.
    fn both() -> [Treatment; 2] {
        plan(1, 0).treatments.try_into().unwrap()
    }

    /// Whether a trial of 600 µs, of which a lag of 9 µs is little, may be so late after
    /// those trials of the baseline.
    fn is_borne(before: &[Observation]) -> bool {
        let ([host, vxlan], limits) = (both(), Thresholds::default());
        let mut lateness = Lateness::default();
        for one in before {
            lateness.note(&host, None, one, &limits);
        }
        let late = lateness.judge(&vxlan, None, &trial(600_000, 9_000), &limits);
        late.is_none()
    }

    #[test]
    fn a_trial_is_held_to_its_baseline_and_not_to_its_own_outcome() {
        assert!(is_borne(&[trial(100_000, 300)]));
        assert!(!is_borne(&[trial(60_000, 300)]));
        assert!(!is_borne(&[trial(100_000, 300), trial(60_000, 300)]));
        // One that was late for its own latency is nothing to go by: nothing is known yet.
        assert!(is_borne(&[trial(60_000, 20_000)]));
    }

    #[test]
    fn a_baseline_is_held_to_its_last_trial_and_follows_a_machine_that_became_slower() {
        let ([host, _], limits) = (both(), Thresholds::default());
        let mut lateness = Lateness::default();
        lateness.note(&host, None, &trial(60_000, 300), &limits);
        let slow = trial(200_000, 9_000);
        for is_late in [true, false] {
            let found = lateness.judge(&host, None, &slow, &limits);
            assert_eq!(found.is_some(), is_late, "{found:?}");
            lateness.note(&host, None, &slow, &limits);
        }
    }

    #[test]
    fn pairs_are_held_to_what_they_showed_themselves() {
        let ([host, vxlan], limits) = (both(), Thresholds::default());
        let mut lateness = Lateness::default();
        lateness.note(&host, Some(0), &trial(200_000, 300), &limits);
        lateness.note(&host, Some(1), &trial(60_000, 300), &limits);
        let late = |pair| lateness.judge(&vxlan, Some(pair), &trial(200_000, 9_000), &limits);
        assert_eq!((late(0).is_some(), late(1).is_some()), (false, true));
        // A pair that has shown nothing yet is held to the last trial of all.
        assert!(late(2).is_some());
    }

    #[test]
    fn one_in_ten_that_is_late_is_too_many() {
        let stalled = (0..5000).map(|i| if i < 600 { 2 * MS } else { 3_000 });
        let mut planted = healthy();
        planted.load.load.generator_lag = histogram(stalled);
        let ([host, _], limits) = (both(), Thresholds::default());
        let found = Lateness::default().judge(&host, None, &seen(planted), &limits);
        assert!(
            matches!(found, Some(GateFailure::SendLag { quantile: 0.9, .. })),
            "{found:?}"
        );
    }

    #[test]
    fn a_server_that_stalls_makes_nobody_late() {
        // Requests wait for a free connection: that is the server's lateness.
        let late = |i| if i < 500 { 200 * MS } else { 60_000 };
        let mut planted = healthy();
        planted.load.load.latency = histogram((0..5000).map(late));
        planted.load.load.send_lag = histogram((0..5000).map(late));
        let ([host, _], limits) = (both(), Thresholds::default());
        let found = Lateness::default().judge(&host, None, &seen(planted), &limits);
        assert_eq!(found, None);
    }

    #[test]
    fn a_closed_loop_and_one_beside_a_neighbour_have_no_schedule_to_miss() {
        let ([host, _], limits) = (both(), Thresholds::default());
        let late = |treatment: &Treatment| {
            let seen = trial(60_000, MS);
            let alone = Lateness::default().judge(treatment, None, &seen, &limits);
            let mut lateness = Lateness::default();
            let together = lateness.judge_turns(&[(treatment, Some(&seen))], &limits);
            assert_eq!(together[0].is_some(), alone.is_some());
            alone.is_some()
        };
        assert!(late(&host));
        let mut closed = host.clone();
        closed.task.load_mut().unwrap().arrival = Arrival::Closed;
        assert!(!late(&closed));
        let mut beside = host.clone();
        beside.scene.neighbours.further = 1;
        assert!(!late(&beside));
    }

    fn limit_ns(found: &Option<GateFailure>) -> Option<u64> {
        match found {
            Some(GateFailure::SendLag { limit_ns, .. }) => Some(*limit_ns),
            _ => None,
        }
    }

    #[test]
    fn in_turns_all_are_held_to_the_baseline_of_their_block() {
        let treatments = both();
        // Less than a tenth of its own median, and more than that of the baseline.
        let (host, slow) = (seen(healthy()), trial(600_000, 20_000));
        let limits = Thresholds::default();
        let judge = |host| {
            let members = [(&treatments[0], host), (&treatments[1], Some(&slow))];
            // What the baseline showed before has no say.
            let mut lateness = Lateness::default();
            lateness.note(&treatments[0], None, &trial(900_000, 300), &limits);
            lateness.judge_turns(&members, &limits)
        };
        let found = judge(Some(&host));
        assert_eq!(found[0], None);
        assert!(
            (6_000..=6_500).contains(&limit_ns(&found[1]).unwrap()),
            "{found:?}"
        );
        // Without the baseline, what is always allowed.
        let found = judge(None);
        assert_eq!(limit_ns(&found[1]), Some(5_000), "{found:?}");
    }

    #[test]
    fn a_baseline_in_other_turns_allows_what_it_allows_itself() {
        let ([host, vxlan], limits) = (both(), Thresholds::default());
        let mut lateness = Lateness::default();
        let judge = |lateness: &mut Lateness, treatment, seen| {
            let found = lateness.judge_turns(&[(treatment, Some(seen))], &limits);
            lateness.end_turns();
            limit_ns(&found[0])
        };
        // Until it has shown something both are held to themselves.
        let slow = trial(200_000, 9_000);
        for treatment in [&host, &vxlan] {
            assert_eq!(judge(&mut lateness, treatment, &slow), None);
        }
        lateness.note(&host, None, &slow, &limits);
        assert_eq!(judge(&mut lateness, &vxlan, &slow), None);
        let slower = trial(600_000, 30_000);
        let limit_ns = judge(&mut lateness, &vxlan, &slower).unwrap();
        assert!((19_900..=20_100).contains(&limit_ns), "{limit_ns}");
    }

    /// A trial of this latency, of which two requests in a hundred were sent half a
    /// millisecond late.
    fn late_tail(latency_ns: u64) -> Observation {
        let mut planted = healthy();
        planted.load.load.latency = histogram([latency_ns; 5000]);
        let late = |i| if i < 100 { MS / 2 } else { 300 };
        planted.load.load.generator_lag = histogram((0..5000).map(late));
        seen(planted)
    }

    #[test]
    fn a_late_tail_costs_the_tail_and_not_the_trial() {
        let ([host, _], limits) = (both(), Thresholds::default());
        let lateness = Lateness::default();
        let late = late_tail(100_000);
        assert_eq!(lateness.judge(&host, None, &late, &limits), None);
        let warning = lateness.late_tail(&host, None, &late, &limits);
        assert!(
            matches!(
                warning,
                Some(Warning::TailLag {
                    lag_ns: 499_000..=501_000,
                    latency_ns: 99_000..=101_000,
                })
            ),
            "{warning:?}"
        );
        let punctual = trial(100_000, 300);
        assert_eq!(lateness.late_tail(&host, None, &punctual, &limits), None);
    }

    #[test]
    fn a_tail_is_held_to_the_baselines_so_a_fast_network_loses_it_no_sooner_than_a_slow_one() {
        let (treatments, limits) = (both(), Thresholds::default());
        let [host, vxlan] = &treatments;
        let (fast, slow) = (late_tail(100_000), late_tail(2 * MS));
        let is_late = |lateness: &Lateness, treatment, seen| {
            let found = lateness.late_tail(treatment, None, seen, &limits);
            found.is_some()
        };
        let mut in_turns = Lateness::default();
        in_turns.judge_turns(&[(host, Some(&fast)), (vxlan, Some(&slow))], &limits);
        assert!(is_late(&in_turns, host, &fast) && is_late(&in_turns, vxlan, &slow));
        // Half a millisecond is little of 2 ms, whoever needs less.
        in_turns.judge_turns(&[(host, Some(&slow)), (vxlan, Some(&fast))], &limits);
        assert!(!is_late(&in_turns, host, &slow) && !is_late(&in_turns, vxlan, &fast));
        // In windows of their own, by the last one of the baseline.
        let mut apart = Lateness::default();
        apart.note(host, None, &fast, &limits);
        assert!(is_late(&apart, vxlan, &slow));
    }

    #[test]
    fn where_nothing_was_answered_there_is_no_latency_to_be_a_share_of() {
        let ([host, vxlan], limits) = (both(), Thresholds::default());
        let mut planted = healthy();
        planted.load.load.latency = Histogram::new();
        planted.load.load.generator_lag = histogram([MS; 5000]);
        let datagrams = seen(planted);
        let mut lateness = Lateness::default();
        assert_eq!(lateness.judge(&host, None, &datagrams, &limits), None);
        assert_eq!(lateness.late_tail(&host, None, &datagrams, &limits), None);
        let members = [(&host, Some(&datagrams))];
        assert_eq!(lateness.judge_turns(&members, &limits), [None]);
        lateness.end_turns();
        // Nor does it say anything of what comes next.
        lateness.note(&host, None, &datagrams, &limits);
        let slow = trial(600_000, 20_000);
        assert_eq!(lateness.judge(&vxlan, None, &slow, &limits), None);
    }
}

use plumbline_record::{GateFailure, RotationRecord, Trial, TrialStatus, Warning};
use plumbline_report::Summary;
use plumbline_stats::verdict::Verdict;

use crate::fake::{self, Fake, Network, load_of};

const VXLAN: Network = Network {
    label: "vxlan",
    latency: 1.31,
    tail: 1.0,
    cpu: 1.22,
    throughput: 0.82,
};

pub(crate) fn two() -> Fake {
    Fake::new(&[Network::same("host"), VXLAN])
}

pub(crate) fn summary(fake: &Fake) -> Summary {
    let (run, trials) = fake.run();
    Summary::new(&run, &trials)
}

#[test]
fn planted_effects_are_found_with_their_sign() {
    let summary = summary(&two());
    let effect_of = |treatment, metric| {
        let found = summary.comparison(treatment, metric).unwrap();
        assert_eq!(
            found.effect.unwrap().verdict,
            Some(Verdict::Worse),
            "{metric:?}"
        );
        (found.effect.unwrap(), found.difference.unwrap())
    };
    for (treatment, metric, planted) in [
        (1, "p50", 0.31),
        (1, "cpu_per_request", 0.22),
        (3, "throughput", -0.18),
        (3, "cpu_per_byte", 0.22),
    ] {
        let (effect, difference) = effect_of(treatment, metric);
        let interval = effect.interval.unwrap();
        assert!(interval.contains(planted), "{metric:?}: {effect:?}");
        assert_eq!(difference > 0.0, planted > 0.0, "{metric:?}");
    }
    let (_, nanoseconds) = effect_of(1, "p50");
    assert!(
        (nanoseconds / (0.31 * 28_000.0) - 1.0).abs() < 0.1,
        "{nanoseconds}"
    );
}

#[test]
fn primary_metrics_are_adjusted_together_and_others_among_all() {
    let summary = summary(&two());
    let primary: Vec<_> = summary
        .comparisons
        .iter()
        .filter(|one| one.is_primary)
        .map(|one| (one.treatment, one.metric.name()))
        .collect();
    assert_eq!(
        primary,
        [
            (1, "p50"),
            (1, "cpu_per_request"),
            (3, "throughput"),
            (3, "cpu_per_byte")
        ]
    );
    // Every block agrees in all of them, which one choice of signs in 2^9 does.
    let adjusted = summary
        .comparison(1, "p50")
        .unwrap()
        .effect
        .unwrap()
        .adjusted_p;
    assert!((adjusted - 1.0 / 512.0).abs() < 1e-12, "{adjusted}");
    let p99 = summary.comparison(1, "p99").unwrap();
    assert!(!p99.is_primary);
    assert!(p99.effect.unwrap().adjusted_p >= adjusted);
}

#[test]
fn a_percentile_without_samples_is_withheld() {
    // 10 trials of 1,750 answers: 175 lie beyond p99, 17 beyond p99.9.
    let summary = summary(&two());
    let latency = summary.treatments[0].latency.as_ref().unwrap();
    assert_eq!(latency.pooled.len(), 17_500);
    assert!(latency.figures.at(0.99).is_some());
    assert_eq!(latency.figures.at(0.999), None);
    assert!(summary.treatments[0].over_trials("p99").is_none());
    let mut more = two();
    more.samples = 10_100;
    let (run, trials) = more.run();
    let summary = Summary::new(&run, &trials);
    assert!(summary.treatments[0].over_trials("p99").is_some());
}

#[test]
fn correlated_answers_are_worth_fewer() {
    let (run, mut trials) = two().run();
    for trial in &mut trials {
        let load = &mut load_of(trial).load;
        // Half of the window is slow: slices that hang together.
        load.slice_p50_ns = (0..100)
            .map(|slice| if slice < 50 { 20_000 } else { 40_000 })
            .collect();
    }
    let summary = Summary::new(&run, &trials);
    let latency = summary.treatments[0].latency.as_ref().unwrap();
    assert!(
        latency.support.effective_samples < 2_000.0,
        "{:?}",
        latency.support
    );
    assert_eq!(latency.figures.at(0.99), None);
}

#[test]
fn the_last_valid_attempt_counts_and_the_rest_is_accounted_for() {
    let (run, mut trials) = two().run();
    // Block 0: host is disturbed once, then runs well; vxlan never does.
    let disturbed = TrialStatus::Invalid {
        gates: vec![GateFailure::Disturbed {
            by: "steal".to_owned(),
            amount: 0.02,
            limit: 0.005,
        }],
    };
    let mut again = trials.clone();
    again.retain(|trial| trial.block == 0 && trial.treatment == 0);
    again[0].attempt = 1;
    let answers = again[0]
        .observation
        .as_ref()
        .unwrap()
        .load()
        .unwrap()
        .load
        .latency
        .clone();
    for trial in trials
        .iter_mut()
        .filter(|one| one.block == 0 && one.treatment < 2)
    {
        trial.status = disturbed.clone();
        let load = &mut load_of(trial).load;
        load.latency = fake::observed::latencies(1_750, 1e6, 1.0);
    }
    trials.extend(again);
    let summary = Summary::new(&run, &trials);

    let host = &summary.treatments[0];
    assert_eq!(host.values_of("p50")[0].value, answers.value_at(0.5) as f64);
    assert_eq!(
        (
            host.account.kept,
            host.account.repeated,
            host.account.failed
        ),
        (10, 1, 0)
    );
    let vxlan = &summary.treatments[1].account;
    assert_eq!((vxlan.kept, vxlan.repeated, vxlan.failed), (9, 0, 1));
    let all = &summary.account;
    assert_eq!(all.planned, all.kept + all.failed + all.missing);
    assert_eq!(all.failures[0].reason, "disturbed by steal");
    assert_eq!(all.failures[0].trials, 2);
    let compared = summary.comparison(1, "p50").unwrap().effect.unwrap();
    assert_eq!(compared.blocks, 9, "the block without vxlan is left out");
    let exhausted = |warning: &Warning| matches!(warning, Warning::RetriesExhausted { .. });
    assert!(summary.notices.iter().any(|one| exhausted(&one.warning)));
}

#[test]
fn failures_that_differ_in_numbers_alone_are_one_reason() {
    let (run, mut trials) = two().run();
    for (number, trial) in trials.iter_mut().take(3).enumerate() {
        let error = format!("process {} has not ended within 5000 ms", 98 + number);
        trial.status = TrialStatus::Failed { error };
        trial.observation = None;
    }
    let failures = Summary::new(&run, &trials).account.failures;
    let [one] = &failures[..] else {
        panic!("{failures:?}");
    };
    assert_eq!(one.trials, 3);
    let (before, after) = ("failed: process ", " has not ended within 5000 ms");
    assert!(one.reason.starts_with(before), "{}", one.reason);
    assert!(one.reason.ends_with(after), "{}", one.reason);
}

#[test]
fn of_treatments_that_took_turns_one_attempt_counts() {
    let (run, mut trials) = two().run();
    trials.retain(|trial| trial.treatment < 2);
    let late = TrialStatus::Invalid {
        gates: vec![GateFailure::SendLag {
            quantile: 0.5,
            lag_ns: 2_000,
            limit_ns: 1_000,
        }],
    };
    for trial in &mut trials {
        let common = &mut trial.observation.as_mut().unwrap().common;
        common.rotation = Some(RotationRecord::default());
        trial.started = format!("2026-01-01T12:{:02}:00Z", trial.block);
    }
    let in_block = |block| move |trial: &&Trial| trial.block == block;
    let again = |block| {
        let of_block = trials.iter().filter(in_block(block)).cloned();
        of_block.map(move |trial| Trial {
            attempt: 1,
            started: format!("2026-01-01T13:{block:02}:00Z"),
            ..trial
        })
    };
    let mut again: Vec<Trial> = again(0).chain(again(1)).collect();
    // In both blocks vxlan does not count at first. When it does, host does not: in block 0.
    for trial in trials
        .iter_mut()
        .filter(|it| it.block < 2 && it.treatment == 1)
    {
        trial.status = late.clone();
    }
    let is_host = |it: &&mut Trial| (it.block, it.treatment) == (0, 0);
    again.iter_mut().find(is_host).unwrap().status = late;
    trials.extend(again);
    let summary = Summary::new(&run, &trials);
    let compared = summary.comparison(1, "p50").unwrap().effect.unwrap();
    assert_eq!(compared.blocks, 9, "no attempt of block 0 has both");
    let kept = [0, 1].map(|at: usize| summary.treatments[at].account.kept);
    assert_eq!(kept, [9, 10]);
}

/// A run whose vxlan trials of `request/response` had a late sender in the
/// first `late` blocks, which shows as a tail of its own.
fn with_late_tails(late: u32, samples: u64) -> Summary {
    let mut fake = two();
    fake.samples = samples;
    let (run, mut trials) = fake.run();
    for trial in trials
        .iter_mut()
        .filter(|one| one.treatment == 1 && one.block < late)
    {
        trial.warnings.push(Warning::TailLag {
            lag_ns: 900_000,
            latency_ns: 1_000_000 + u64::from(trial.block),
        });
        let load = &mut load_of(trial).load;
        (0..40).for_each(|_| load.latency.record(1_000_000));
    }
    Summary::new(&run, &trials)
}

#[test]
fn a_late_tail_costs_the_tail_of_its_trial_only() {
    let summary = with_late_tails(3, 1_750);
    let pairs = |metric| {
        summary
            .comparison(1, metric)
            .unwrap()
            .effect
            .unwrap()
            .blocks
    };
    assert_eq!((pairs("p50"), pairs("cpu_per_request")), (10, 10));
    assert_eq!(pairs("p99"), 7);
    let latency = summary.treatments[1].latency.as_ref().unwrap();
    assert_eq!((latency.late_tails, latency.pooled.len()), (3, 7 * 1_750));
    assert!(latency.figures.at(0.99).unwrap() < 200_000, "{latency:?}");
    let notice = summary
        .notices
        .iter()
        .find(|one| matches!(one.warning, Warning::TailLag { .. }));
    assert_eq!(
        (notice.unwrap().trials, &notice.unwrap().treatments[..]),
        (3, &[1][..])
    );
}

#[test]
fn a_median_over_trials_of_a_tail_rests_on_punctual_senders() {
    let of_vxlan = |late| with_late_tails(late, 10_100).treatments[1].over_trials("p99");
    let without = of_vxlan(0).unwrap().median;
    let with_some = of_vxlan(5).unwrap().median;
    assert!((with_some / without - 1.0).abs() < 0.2, "{with_some}");
    assert!(of_vxlan(6).is_none(), "most senders were late");
}

#[test]
fn where_most_tails_are_late_none_is_shown() {
    let summary = with_late_tails(6, 1_750);
    let latency = summary.treatments[1].latency.as_ref().unwrap();
    let figures = latency.figures;
    assert!(figures.at(0.9).is_some() && figures.at(0.99).is_none() && figures.max.is_none());
    assert_eq!(latency.pooled.len(), 10 * 1_750 + 6 * 40);
    assert_eq!(summary.treatments[1].over_trials("p50").unwrap().median, {
        let values = summary.treatments[1].values_of("p50");
        assert_eq!(values.len(), 10);
        plumbline_stats::order::median_of_runs(
            &values.iter().map(|one| one.value).collect::<Vec<_>>(),
            0.95,
        )
        .unwrap()
        .median
    });
}

#[test]
fn a_percentile_lies_between_the_samples_that_bound_it() {
    let bounds = |fake: &Fake| {
        let summary = summary(fake);
        let latency = summary.treatments[0].latency.as_ref().unwrap();
        let (low, high) = latency.intervals[2].unwrap();
        let p99 = latency.figures.at(0.99).unwrap();
        assert!(low < p99 && p99 < high, "{low} {p99} {high}");
        assert_eq!(latency.intervals[3], None, "withheld with its percentile");
        (low, high, latency.pooled.clone())
    };
    let alike = Fake {
        noise: 0.0,
        ..two()
    };
    let (low, high, pooled) = bounds(&alike);
    // Of 17,500 samples of trials that are alike the bounds are p98.84 and p99.16, in
    // steps of 0.06 % since the trials have the same samples.
    let at = |quantile| pooled.value_at(quantile);
    assert!(at(0.988) <= low && low < at(0.989), "{low}");
    assert!(at(0.991) < high && high <= at(0.992), "{high}");
    // Trials that differ among themselves are worth fewer.
    let (low, high, pooled) = bounds(&two());
    let at = |quantile| pooled.value_at(quantile);
    assert!(low < at(0.988) && at(0.992) < high, "{low} {high}");
}

#[test]
fn a_run_that_was_cut_off_says_so() {
    let (run, mut trials) = two().run();
    trials.truncate(25);
    let summary = Summary::new(&run, &trials);
    assert!(summary.is_cut_off());
    assert_eq!(summary.account.missing, 15);
    let cut = Warning::CutOff {
        finished: 25,
        planned: 40,
    };
    assert!(summary.notices.iter().any(|one| one.warning == cut));
}

#[test]
fn an_outlier_is_flagged_and_kept() {
    let (run, mut trials) = two().run();
    let wild = trials
        .iter_mut()
        .find(|one| one.block == 4 && one.treatment == 1);
    let load = &mut load_of(wild.unwrap()).load;
    load.latency = fake::observed::latencies(1_750, 400_000.0, 1.0);
    let summary = Summary::new(&run, &trials);
    let vxlan = &summary.treatments[1];
    assert!(
        vxlan
            .outliers
            .iter()
            .any(|one| one.metric.name() == "p50" && one.block == 4)
    );
    assert_eq!(vxlan.values_of("p50").len(), 10);
    let effect = summary.comparison(1, "p50").unwrap().effect.unwrap();
    assert_eq!(effect.blocks, 10);
}

#[test]
fn the_cheapest_network_comes_first_after_the_baseline() {
    let summary = summary(&Fake::new(&fake::networks()));
    let labels: Vec<_> = summary.sections[0]
        .treatments
        .iter()
        .map(|&id| summary.treatments[id].treatment.label.as_str())
        .collect();
    let rising = [
        "host",
        "macvlan",
        "routed",
        "host-gw",
        "aws-vpc",
        "calico-vxlan",
        "vxlan",
    ];
    assert_eq!(labels, rising);
}

#[test]
fn warnings_of_trials_are_gathered_with_the_worst_figure() {
    let (run, mut trials) = two().run();
    for (trial, share) in trials.iter_mut().zip([0.01, 0.03, 0.02]) {
        trial.warnings.push(Warning::Steal { share });
    }
    let summary = Summary::new(&run, &trials);
    let steal: Vec<_> = summary
        .notices
        .iter()
        .filter(|one| matches!(one.warning, Warning::Steal { .. }))
        .collect();
    assert_eq!(steal.len(), 1);
    assert_eq!(steal[0].warning, Warning::Steal { share: 0.03 });
    assert_eq!(steal[0].trials, 3);
}

#[test]
fn datagrams_count_where_they_arrive() {
    let mut fake = two();
    fake.workloads = vec![fake::datagram()];
    let summary = summary(&fake);
    let host = &summary.treatments[0];
    let rates = host.rates.as_ref().unwrap();
    let loss = rates.loss_share.unwrap();
    assert!((loss - 0.01).abs() < 1e-3, "{loss}");
    let rate = rates.throughput_bits_per_second.unwrap().median;
    assert!(
        (rate / (4.2e8 * 0.99 * 8.0 / 0.35) - 1.0).abs() < 0.05,
        "{rate}"
    );
}

/// Of 1,000 datagrams a trial the second network loses so many.
fn losing(lost: impl Fn(u32) -> u64) -> Summary {
    let mut fake = two();
    fake.workloads.truncate(1);
    fake.workloads[0].kind = plumbline_experiment::WorkloadKind::Datagram;
    let (run, mut trials) = fake.run();
    for trial in &mut trials {
        let observation = trial.observation.as_mut();
        let load = observation.and_then(|seen| seen.load_mut()).unwrap();
        load.load.sent = 1_000;
        let lost = if trial.treatment == 1 {
            lost(trial.block)
        } else {
            0
        };
        load.serve.datagrams = Some(plumbline_record::DatagramCounts {
            received: 1_000 - lost,
            ..Default::default()
        });
    }
    Summary::new(&run, &trials)
}

#[test]
fn a_network_that_loses_all_is_no_network_of_which_nothing_is_known() {
    let summary = losing(|_| 1_000);
    let effect = summary.comparison(1, "loss").unwrap().effect.unwrap();
    assert_eq!(effect.verdict, Some(Verdict::Worse));
}

#[test]
fn datagrams_at_a_held_rate_are_led_by_loss() {
    let summary = losing(|block| 20 + u64::from(block));
    assert_eq!(summary.sections[0].leading.name(), "loss");
    let loss = summary.comparison(1, "loss").unwrap();
    assert!(loss.is_primary && loss.difference.is_none());
    let effect = loss.effect.unwrap();
    assert_eq!(effect.verdict, Some(Verdict::Worse));
    assert!((effect.ratio_minus_one - 0.025).abs() < 0.001, "{effect:?}");
    let throughput = summary.comparison(1, "throughput").unwrap();
    assert!(!throughput.is_primary, "it cannot differ at a held rate");
}

#[test]
fn what_is_not_shown_is_not_compared() {
    let mut fake = two();
    fake.samples = 300;
    let summary = summary(&fake);
    assert!(summary.comparison(1, "p99").unwrap().effect.is_none());
    assert!(summary.comparison(1, "p50").unwrap().effect.is_some());
}

#[test]
fn errors_count_as_late_and_not_as_absent() {
    let (run, mut trials) = two().run();
    let before = Summary::new(&run, &trials);
    for trial in trials.iter_mut().filter(|trial| trial.treatment == 1) {
        let load = trial
            .observation
            .as_mut()
            .and_then(|seen| seen.load_mut())
            .unwrap();
        load.load.errors.closed = load.load.latency.len() / 10;
    }
    let after = Summary::new(&run, &trials);
    let p50 = |summary: &Summary| summary.treatments[1].over_trials("p50").unwrap().median;
    assert!(
        p50(&after) > p50(&before) * 1.01,
        "{} {}",
        p50(&after),
        p50(&before)
    );
    let latency = after.treatments[1].latency.as_ref().unwrap();
    assert_eq!(latency.figures.at(0.99), None, "it lies among the errors");
}

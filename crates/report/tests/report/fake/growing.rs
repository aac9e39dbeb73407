//! Runs whose costs grow with what is planted.

use plumbline_experiment::{Scene, Workload};
use plumbline_record::{Run, Trial};

use super::{Fake, Network, rr};

/// Nanoseconds of a request on a network that does nothing.
pub(crate) const HOST: f64 = 28_000.0;

/// A network, and its cost in nanoseconds by what is planted in it.
pub(crate) type Growing = (&'static str, fn(f64) -> f64);

/// Networks at several levels of what is planted in them, nanoseconds.
pub(crate) fn growing(blocks: u32, costs: &[Growing], levels: &[u64]) -> (Run, Vec<Trial>) {
    let all = || {
        let at_levels = |cost: Growing| levels.iter().map(move |&ns| (cost, ns));
        costs.iter().flat_map(move |&cost| at_levels(cost))
    };
    let network = |((label, cost), ns): (Growing, u64)| Network {
        latency: cost(ns as f64) / HOST,
        ..Network::same(label)
    };
    let fake = Fake {
        workloads: vec![rr()],
        blocks,
        ..Fake::new(&all().map(network).collect::<Vec<_>>())
    };
    let (mut run, trials) = fake.run();
    for (treatment, ((network, _), planted_ns)) in run.plan.treatments.iter_mut().zip(all()) {
        treatment.scene = Scene {
            planted_ns,
            ..Scene::of(network)
        };
        treatment.label = treatment.scene.name().into_owned();
    }
    (run, trials)
}

/// Scenes with what a request costs in each, nanoseconds, under some workloads; the first is
/// the baseline. Connections that stay open cost the same in all of them: there every
/// treatment shows what its baseline shows.
pub(crate) fn dressed(
    blocks: u32,
    scenes: &[(Scene, f64)],
    workloads: &[Workload],
) -> (Run, Vec<Trial>) {
    let network = |(_, cost): &(Scene, f64)| Network {
        latency: cost / HOST,
        ..Network::same("routed")
    };
    let fake = Fake {
        workloads: workloads.to_vec(),
        blocks,
        ..Fake::new(&scenes.iter().map(network).collect::<Vec<_>>())
    };
    let (mut run, mut trials) = fake.run();
    let count = scenes.len();
    for treatment in &mut run.plan.treatments {
        let place = treatment.id % count;
        treatment.scene = scenes[place].0.clone();
        treatment.label = format!("routed#{place}");
    }
    let baselines = trials.iter().filter(|one| one.treatment % count == 0);
    let baselines: Vec<Trial> = baselines.cloned().collect();
    for trial in &mut trials {
        let workload = trial.treatment / count;
        if workloads[workload].keeps_connections() {
            let is_like =
                |one: &&Trial| one.block == trial.block && one.treatment == workload * count;
            let baseline = baselines
                .iter()
                .find(is_like)
                .expect("it is in every block");
            trial.observation = baseline.observation.clone();
        }
    }
    (run, trials)
}

/// What one more planted costs, in one law each.
pub(crate) fn laws() -> (Run, Vec<Trial>) {
    let costs: [Growing; 3] = [
        ("host", |ns| HOST + ns),
        ("vxlan", |_| HOST + 10_000.0),
        ("bridge", |ns| HOST + 5_000.0 + 100.0 * ns.sqrt()),
    ];
    growing(10, &costs, &[0, 100, 1_000, 10_000, 30_000])
}

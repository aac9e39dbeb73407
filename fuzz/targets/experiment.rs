//! Experiment files: what can be read has a plan that can be run, or is refused with a reason.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plumbline_experiment::{Asked, Experiment, Scene};

fuzz_target!(|text: &str| {
    let parsed = Experiment::parse(text, "x.toml");
    let expand = |asked: &Asked<'_>| Ok(vec![Scene::of(asked.network.word())]);
    match parsed.and_then(|experiment| experiment.resolve(1, &expand)) {
        Ok(plan) => plan.validate().expect("it was resolved"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});

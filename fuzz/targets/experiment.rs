//! Experiment files.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plumbline_experiment::Experiment;

fuzz_target!(|text: &str| {
    if let Err(error) = Experiment::parse(text, "x.toml") {
        assert!(!error.to_string().is_empty());
    }
});

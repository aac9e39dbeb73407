//! The files of a run that somebody else made or cut off: what is read is written alike.
#![no_main]

mod laid;

use libfuzzer_sys::fuzz_target;
use plumbline_record::Run;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What is read of it once it is written.
fn written<T: Serialize + DeserializeOwned>(read: &T) -> T {
    let text = serde_json::to_vec(read).expect("it is JSON");
    serde_json::from_slice(&text).expect("we wrote it")
}

fuzz_target!(|input: &[u8]| {
    let Some((run, trials)) = laid::read(input) else {
        return;
    };
    let lines = input.iter().filter(|byte| **byte == b'\n').count() + 1;
    // In older formats a line may hold a set-up, too.
    assert!(trials.len() + run.damaged_lines as usize <= 2 * lines);
    let damaged_lines = run.damaged_lines;
    let again = Run {
        damaged_lines,
        ..written(&run)
    };
    assert_eq!(again, run);
    for trial in &trials {
        assert_eq!(written(trial), *trial);
    }
});

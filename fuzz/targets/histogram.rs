//! Histograms of a run: what is read merges and is written as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plumbline_record::Histogram;

fuzz_target!(|bytes: &[u8]| {
    let Ok(read) = serde_json::from_slice::<Histogram>(bytes) else {
        return;
    };
    let written = serde_json::to_value(&read).expect("it is JSON");
    let again: Histogram = serde_json::from_value(written.clone()).expect("we wrote it");
    assert_eq!(serde_json::to_value(&again).expect("it is JSON"), written);
    let mut sum = Histogram::new();
    sum.merge(&read);
    assert_eq!(sum.len(), read.len());
});

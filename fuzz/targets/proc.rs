//! Files of `/proc` and `/sys`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    plumbline_sys::counters::fuzzing::files(text);
    plumbline_agent::fuzzing::files(text);
});

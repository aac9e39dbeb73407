//! Files of `/proc` and `/sys`, and the one that tells a pod its name server.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    plumbline_sys::counters::fuzzing::files(text);
    plumbline_agent::fuzzing::files(text);
    plumbline_uml::fuzzing::cpuinfo(text);
    plumbline_validation::fuzzing::status(text);
});

//! Configuration lists of CNI, and what is derived for their plugins.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    plumbline_lab::network::cni::fuzzing::list(text);
});

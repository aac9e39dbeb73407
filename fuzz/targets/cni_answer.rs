//! What plugins of CNI answer.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    plumbline_lab::network::cni::fuzzing::answer(bytes);
});

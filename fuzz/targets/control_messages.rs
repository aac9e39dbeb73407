//! Control messages beside what is received.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    plumbline_sys::socket::fuzzing::control_messages(bytes);
});

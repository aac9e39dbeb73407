//! What the kernel answers by netlink.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    plumbline_sys::netlink::fuzzing::answers(bytes);
});

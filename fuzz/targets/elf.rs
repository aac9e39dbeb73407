//! Programs that are to be packed into an image.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| plumbline_kubernetes::fuzzing::program(bytes));

//! Programs that are to be packed into an image, or copied to a host.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plumbline_build::LinuxProgram;

fuzz_target!(|bytes: &[u8]| match LinuxProgram::read(bytes) {
    Ok(read) => assert!(read.interpreter.is_none_or(|it| !it.ends_with('\0'))),
    Err(why) => assert!(!why.to_string().is_empty()),
});

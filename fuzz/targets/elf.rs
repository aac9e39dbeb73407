//! Programs that are to be packed into an image, or copied to a host: both say the same of one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plumbline_kubernetes::image::ImageError;

fuzz_target!(|bytes: &[u8]| {
    let copied = plumbline_hosts::fuzzing::program(bytes);
    match plumbline_kubernetes::fuzzing::program(bytes) {
        Ok("amd64") => assert_eq!(copied, Some(("x86_64", false))),
        Ok(architecture) => assert_eq!((architecture, copied), ("arm64", Some(("aarch64", false)))),
        Err(ImageError::Dynamic { .. }) => {
            assert!(copied.is_some_and(|(_, is_dynamic)| is_dynamic))
        }
        Err(_) => assert_eq!(copied, None),
    }
});

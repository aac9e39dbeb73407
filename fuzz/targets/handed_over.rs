//! What a command prints that brought a cluster up: `KUBECONFIG=` and other lines.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|said: &str| plumbline_kubernetes::fuzzing::handed_over(said));

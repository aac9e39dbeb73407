//! What is printed by a command that brought a cluster up, `KUBECONFIG=` and other lines, and by
//! the shell of a host.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|said: &str| {
    plumbline_kubernetes::fuzzing::handed_over(said);
    plumbline_hosts::fuzzing::first_line(said);
});

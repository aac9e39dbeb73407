//! What is printed by a command that brought a cluster up, `KUBECONFIG=` and other lines, and by
//! the shell of a host.
#![no_main]

#[path = "../../crates/kubernetes/src/handed.rs"]
mod handed;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|said: &str| {
    handed::hold(said);
    plumbline_hosts::fuzzing::first_line(said);
});

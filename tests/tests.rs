//! The program as people and scripts meet it: one binary of tests, a file for
//! each intent.

mod anonymous;
mod architecture;
mod builds;
mod cluster;
#[allow(dead_code, reason = "tests of reports use more of it")]
#[path = "../crates/report/tests/report/documented.rs"]
mod documented;
mod engine;
mod faults;
mod find_max;
mod gate;
mod greeted;
mod hosts;
#[cfg(feature = "kubernetes")]
mod image;
mod inventory;
mod kernel;
mod killed;
mod lease;
mod left;
mod method;
mod moments;
mod neighbours;
mod observed;
mod offloads;
mod path;
mod plugin;
mod promises;
mod runs;
mod shares;
// The crate itself would put these tests, and the program under test, into a user namespace in
// which everybody is root.
#[path = "../crates/testkit/src/skipped.rs"]
mod skipped;
mod stamps;
mod studies;
mod survive;
mod tried;
#[path = "../crates/engine/tests/it/tries.rs"]
mod tries;
mod truth;
mod tune;
mod tuning;
mod usage;
mod validate;
mod world;
mod xray;

//! The program as people and scripts meet it: one binary of tests, a file for
//! each intent.

mod architecture;
mod builds;
mod cluster;
mod engine;
mod faults;
mod find_max;
mod hosts;
#[cfg(feature = "kubernetes")]
mod image;
mod kernel;
mod killed;
mod left;
mod method;
mod observed;
mod plugin;
mod runs;
mod shares;
mod stamps;
mod studies;
mod usage;
mod validate;
mod world;

//! Our engine beside others: the tools that a sceptic trusts, and bare loops.
//!
//! Each comparison alternates theirs and ours on one standing path of the lab,
//! every run with fresh processes, and judges the pairs as `run` judges its
//! blocks. Both sides are watched from outside in the same way: CPU is what
//! the kernel charged the process from its start to its end.

mod bench;
mod bout;
mod catalogue;
mod comparisons;
mod error;
mod exit;
mod flags;
pub mod floor;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod judgement;
mod order;
mod ours;
mod pairs;
mod peers;
mod process;
mod quantity;
#[cfg(test)]
#[path = "../../../fuzz/seeds.rs"]
mod seeds;
mod size;
mod table;

pub use comparisons::Comparisons;
pub use error::{OrderError, ValidationError};
pub use flags::ValidateArgs;
pub use order::ValidationOptions;

//! Settings of the machine that make figures steadier, for as long as a command runs.
//!
//! [`Shown`] says what would be set, and why: what there is to set is one table.
//! [`around`] sets it, runs a command and puts everything back. Before the first change
//! all of them are in a journal on disk, so that [`restore`] can put back what a killed
//! process has left; and neither touches what somebody else has set meanwhile. Nothing is
//! set that outlives a reboot.

mod error;
mod flags;
mod journal;
mod proposal;
mod restored;
mod root;
mod shown;
mod tunable;
mod tuned;

pub use error::TuneError;
pub use flags::TuneArgs;
pub use journal::standing;
pub use proposal::{Adjustment, Proposal};
pub use root::Root;
pub use shown::Shown;
pub use tuned::{around, around_this, restore, while_tuned};

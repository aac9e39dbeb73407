//! What `plumbline load` runs: one load against one target, without experiment
//! and without agents. It knows no terminal.
//!
//! [`LoadArgs`] and [`ServeArgs`] are the flags, [`Destination`] says where to, [`rehearse`] finds out whether both ends mean
//! the same, [`judge`] what in a result is to be distrusted, and [`find_max`]
//! searches for the highest rate that holds a limit.

mod destination;
mod error;
mod find_max;
mod flags;
mod judgement;
mod rehearsal;
mod sharing;

pub use destination::{Destination, DestinationError, public_address};
pub use error::GeneratorError;
pub use find_max::{BrokenOff, SearchRequest, find_max};
pub use flags::{FindMaxArgs, LoadArgs, ServeArgs, driver as driver_word};
pub use judgement::{Circumstances, judge};
pub use rehearsal::rehearse;
pub use sharing::warnings as sharing;

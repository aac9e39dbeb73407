//! A run from plan to directory. [`Session::begin`] resolves an experiment,
//! prepares the target and makes the run directory; [`Session::resume`] opens one
//! that was cut off; [`Session::conduct`] runs what is left of it. Whatever
//! happens, the target is taken down, and no error hides another.
//!
//! Nothing here knows a terminal: a [`Watch`] follows how it goes.

mod anonymous;
mod begin;
mod conditions;
mod error;
mod maxima;
mod on_path;
mod options;
mod precision;
mod prepared;
mod resume;
mod session;
mod tried;
mod undo;
mod watch;

pub use error::{LeftBehind, SessionError, with_causes};
pub use on_path::{on_path, path_experiment};
pub use options::RunOptions;
pub use session::{Conducted, Session};
pub use undo::take_down;
pub use watch::{News, Watch};

//! The report against runs whose effects are known.

mod analysis;
mod beside;
mod builds;
mod clusters;
mod compare;
mod cost;
mod documented;
mod factors;
mod fake;
mod formats;
mod hostile;
mod machine;
mod mesh;
mod older;
mod sentences;
mod terminal;

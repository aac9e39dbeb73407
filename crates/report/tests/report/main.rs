//! The report against runs whose effects are known.

mod fake;
mod terminal;

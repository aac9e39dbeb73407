//! The report against runs whose effects are known.

mod analysis;
mod anonymous;
mod beside;
mod builds;
mod clusters;
mod compare;
mod cost;
mod documented;
mod factors;
mod fake;
mod formats;
mod handshake;
mod hostile;
mod law;
mod load;
mod machine;
mod mesh;
mod older;
mod sentences;
mod terminal;

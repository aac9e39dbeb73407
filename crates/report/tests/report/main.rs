//! The report against runs whose effects are known.

mod analysis;
mod anonymous;
mod answer;
mod beside;
mod builds;
mod clusters;
mod compare;
mod cost;
mod decision;
mod documented;
mod enforcement;
mod factors;
mod fake;
mod formats;
mod handshake;
mod hostile;
mod launch;
mod law;
mod load;
mod machine;
mod mesh;
mod older;
mod programming;
mod sentences;
mod survive;
mod terminal;

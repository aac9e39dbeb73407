//! Programs at the kernel's tracepoints that follow requests from place to place.
//!
//! A [`Tracer`] runs them. They are loaded without a compiler (`bpf/journey.o`), nothing of them
//! is pinned, and nothing goes to user space for each packet.

mod btf;
mod layout;
mod place;
mod tracer;

pub use place::devices;
pub use tracer::{Tracer, TracerError};

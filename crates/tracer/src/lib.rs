//! Programs at the kernel's tracepoints that follow requests from place to place.
//!
//! A [`Tracer`] runs them for a lab on this machine, and for an agent in a pod that may; a
//! [`DropWatch`] sees what becomes of datagrams that do not arrive. They are loaded without a
//! compiler (`bpf/*.o`), nothing of them is pinned, and nothing goes to user space for each
//! packet.

mod at_sockets;
mod btf;
mod drop_reason;
mod drops;
mod layout;
mod place;
mod tracer;

pub use at_sockets::AtSockets;
pub use drops::DropWatch;
pub use place::{devices, own_place};
pub use tracer::{Tracer, TracerError};

//! The engine against real sockets on the loopback device.

mod bulk;
mod faults;
mod http;
mod loopback;
mod rig;
mod self_checks;
mod stalls;

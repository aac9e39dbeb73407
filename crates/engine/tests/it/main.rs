//! The engine against real sockets on the loopback device.

mod faults;
mod http;
mod loopback;
mod rig;
mod stalls;
mod stamps;

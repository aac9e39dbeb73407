//! The engine against real sockets on the loopback device.

mod faults;
mod loopback;
mod rig;
mod stalls;

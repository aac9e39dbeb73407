//! The engine against real sockets on the loopback device.

mod loopback;
mod rig;

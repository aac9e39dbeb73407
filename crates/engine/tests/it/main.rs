//! The engine against real sockets on the loopback device.

/// Makes two tests of each function: one by epoll, one by io_uring, which is a
/// counted skip where that is not allowed.
macro_rules! by_each_driver {
    ($($test:ident),+ $(,)?) => {
        mod by_epoll {
            $(#[test]
            fn $test() {
                crate::rig::by(plumbline_experiment::Driver::Epoll, super::$test);
            })+
        }
        mod by_uring {
            $(#[test]
            fn $test() {
                if crate::rig::has_ring(stringify!($test)) {
                    crate::rig::by(plumbline_experiment::Driver::Uring, super::$test);
                }
            })+
        }
    };
}

mod drivers;
mod faults;
mod http;
mod loopback;
mod rig;
mod self_checks;
mod stalls;

//! The engine against real sockets on the loopback device.

/// Makes two tests of each function: one by epoll, one by io_uring, which is a
/// counted skip where that is not allowed. The two take turns, so that none
/// has less of the machine than it had alone.
macro_rules! by_each_driver {
    ($($test:ident),+ $(,)?) => {
        $(mod $test {
            use plumbline_experiment::DriverChoice;

            use crate::rig;

            static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

            #[test]
            fn by_epoll() {
                rig::by(DriverChoice::Epoll, &TURN, super::$test);
            }

            #[test]
            fn by_uring() {
                if rig::has_ring(concat!(stringify!($test), " by uring")) {
                    rig::by(DriverChoice::Uring, &TURN, super::$test);
                }
            }
        })+
    };
}

mod abuse;
mod bulk;
mod drivers;
mod endure;
mod faults;
mod http;
mod loopback;
mod rig;
mod secrets;
mod self_checks;
mod stalls;
mod stamps;
mod thinking;
mod tries;
mod turns;

//! Which driver runs, and what happens where io_uring is refused.

use std::sync::atomic::AtomicBool;
use std::thread;

use plumbline_engine::{EngineError, ServePlan, run};
use plumbline_experiment::{DriverChoice, Workload, WorkloadKind};

use crate::rig::{Server, has_ring, load, loopback_v4, short, workload};

fn by(driver: DriverChoice) -> Workload {
    Workload {
        driver,
        ..workload(WorkloadKind::Rr)
    }
}

#[test]
fn the_result_names_the_driver_that_ran() {
    let server = Server::start(&ServePlan::new(by(DriverChoice::Auto), loopback_v4()));
    let ran = |driver| load(&short(by(driver), server.address)).driver;
    assert_eq!(ran(DriverChoice::Epoll), "epoll");
    if has_ring("the_result_names_the_driver_that_ran") {
        assert_eq!(ran(DriverChoice::Uring), "uring");
    }
}

/// The refusal is planted as container runtimes plant it: by seccomp.
#[test]
fn a_refused_ring_is_told_with_a_remedy_and_auto_does_without() {
    let server = Server::start(&ServePlan::new(by(DriverChoice::Auto), loopback_v4()));
    let target = server.address;
    // The filter holds for the thread that sets it and for its children, and
    // cannot be taken back.
    let refused = thread::spawn(move || {
        plumbline_testkit::forbid_io_uring().unwrap();
        let auto = load(&short(by(DriverChoice::Auto), target));
        assert_eq!((auto.driver.as_str(), auto.errors.total()), ("epoll", 0));
        assert!(auto.completed > 0, "{auto:?}");
        run(
            &short(by(DriverChoice::Uring), target),
            &AtomicBool::new(false),
            &mut (),
        )
    });
    let error = refused.join().unwrap().unwrap_err();
    assert!(matches!(error, EngineError::Uring { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("seccomp") && text.contains("use epoll"));
}

#[test]
fn bulk_knows_one_driver_and_says_so() {
    for kind in [WorkloadKind::Stream, WorkloadKind::Datagram] {
        let bulk = Workload {
            driver: DriverChoice::Uring,
            ..workload(kind)
        };
        let error = run(
            &short(bulk, loopback_v4()),
            &AtomicBool::new(false),
            &mut (),
        )
        .unwrap_err();
        assert!(matches!(error, EngineError::Plan(_)), "{error}");
        assert!(error.to_string().contains("always go by epoll"));
    }
}

#[test]
fn time_stamps_by_uring_are_refused_in_a_sentence() {
    let stamped = Workload {
        timestamps: 0.01,
        ..by(DriverChoice::Uring)
    };
    let plan = short(stamped, loopback_v4());
    let error = run(&plan, &AtomicBool::new(false), &mut ()).unwrap_err();
    assert!(matches!(error, EngineError::Plan(_)), "{error}");
    assert!(error.to_string().contains("by epoll only"));
}

//! Namespaces, and what is set and read inside them.

use std::net::{TcpListener, TcpStream};

use plumbline_sys::namespace::{Namespace, can_enter_private};
use plumbline_sys::{ethtool, sysctl};
use plumbline_testkit as testkit;

fn setting(key: &str, value: &str) -> (String, String) {
    (key.into(), value.into())
}

#[test]
fn work_runs_inside_and_the_caller_stays_outside() {
    if !testkit::in_private_namespaces("work runs inside, the caller stays outside") {
        return;
    }
    let outside = Namespace::current().expect("here").inode();
    let namespace = Namespace::create().expect("made");
    let inside = namespace.run(|| Namespace::current().expect("there").inode());
    assert_eq!(inside.expect("ran"), namespace.inode());
    assert_ne!(outside, namespace.inode());
    assert_eq!(Namespace::current().expect("here").inode(), outside);
}

#[test]
fn a_panic_inside_reaches_the_caller() {
    if !testkit::in_private_namespaces("a panic inside reaches the caller") {
        return;
    }
    let namespace = Namespace::create().expect("made");
    let caught = std::panic::catch_unwind(|| namespace.run(|| panic!("planted")));
    let panic = caught.expect_err("it panicked");
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"planted"));
}

#[test]
fn sockets_stay_where_they_were_opened() {
    if !testkit::in_private_namespaces("sockets stay where they were opened") {
        return;
    }
    let namespace = Namespace::create().expect("made");
    let listener = namespace.run(|| TcpListener::bind("127.0.0.1:0"));
    let listener = listener.expect("ran").expect("loopback is up");
    let address = listener.local_addr().expect("address");
    assert!(TcpStream::connect(address).is_err(), "not from outside");
    let inside = namespace.run(|| TcpStream::connect(address));
    inside.expect("ran").expect("from inside");
}

#[test]
fn trying_namespaces_changes_nothing() {
    if !testkit::in_private_namespaces("trying namespaces changes nothing") {
        return;
    }
    let before = Namespace::current().expect("here").inode();
    can_enter_private().expect("a process that did it can do it again");
    assert_eq!(Namespace::current().expect("here").inode(), before);
}

#[test]
fn sysctls_are_set_inside_only_and_give_their_old_values() {
    if !testkit::in_private_namespaces("sysctls are set inside only") {
        return;
    }
    let (one, other) = (
        Namespace::create().expect("made"),
        Namespace::create().expect("made"),
    );
    let key = "net/ipv4/ip_forward";
    let before = sysctl::get(&one, key).expect("read");
    let flipped = if before == "0" { "1" } else { "0" };
    let old = sysctl::set(&one, &[setting(key, flipped)]).expect("set");
    assert_eq!(old, [setting(key, &before)]);
    assert_eq!(sysctl::get(&one, key).expect("read"), flipped);
    assert_eq!(sysctl::get(&other, key).expect("read"), before);
}

#[test]
fn a_sysctl_that_is_missing_undoes_the_ones_before() {
    if !testkit::in_private_namespaces("a missing sysctl undoes the ones before") {
        return;
    }
    let namespace = Namespace::create().expect("made");
    let key = "net/ipv4/conf/lo/proxy_arp";
    assert_eq!(sysctl::get(&namespace, key).expect("read"), "0");
    let wish = [setting(key, "1"), setting("net/ipv4/no_such_thing", "1")];
    let error = sysctl::set(&namespace, &wish).expect_err("missing");
    assert!(error.is_missing(), "{error}");
    assert!(
        error.to_string().contains("net/ipv4/no_such_thing"),
        "{error}"
    );
    assert_eq!(sysctl::get(&namespace, key).expect("read"), "0");
}

#[test]
fn offloads_of_the_loopback_device_are_known() {
    if !testkit::in_private_namespaces("offloads of the loopback device are known") {
        return;
    }
    let namespace = Namespace::create().expect("made");
    let features = namespace.run(|| ethtool::active_features("lo"));
    let features = features.expect("ran").expect("answered");
    // The loopback driver has this one fixed (`ethtool -k lo`).
    assert!(
        features.iter().any(|name| name == "loopback"),
        "{features:?}"
    );
    let missing = namespace.run(|| ethtool::active_features("none"));
    assert!(missing.expect("ran").is_err());
}

//! Loads that are stopped before their time tell what there is.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nix::sys::signal::Signal;

use super::read_all;
use crate::world::{PATIENCE, Running, eventually};

/// How long a load of a minute may take to end.
const SOON: Duration = Duration::from_secs(20);

#[test]
fn ctrl_c_ends_a_load_with_what_there_is() {
    let (url, answers) = counting_server();
    let arguments = ["load", &url, "-d", "60s", "--rate", "500"];
    let mut load = Running::start(&arguments);
    // The warm-up takes half a second of it.
    eventually("answers of the window", PATIENCE, || {
        answers.load(Ordering::SeqCst) > 500
    });
    load.signal(Signal::SIGINT);
    assert_eq!(load.wait(SOON), Some(0));
    let told = read_all(load.0.stdout.take());
    assert!(told.contains("p50"), "{told}");
    assert!(told.contains("warning: cut off after "), "{told}");
    assert!(told.contains(" of 60.0 s"), "{told}");
    assert!(!told.contains("ERRORS"), "{told}");
    assert!(!told.contains("never answered"), "{told}");
}

/// An HTTP server that counts what it answers.
fn counting_server() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let answers = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&answers);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let counted = Arc::clone(&counted);
            std::thread::spawn(move || {
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                let mut request = [0; 1024];
                while stream.read(&mut request).is_ok_and(|length| length > 0)
                    && stream.write_all(answer).is_ok()
                {
                    counted.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    (url, answers)
}

#[test]
fn ctrl_c_tells_what_was_in_flight() {
    let (mut load, silent) = load_of_a_silent_server();
    // One looks whether somebody is there, and two ask.
    let mut streams = Vec::new();
    while streams.len() < 2 {
        let (mut stream, _) = silent.accept().unwrap();
        if stream.read(&mut [0; 1024]).unwrap() > 0 {
            streams.push(stream);
        }
    }
    load.signal(Signal::SIGINT);
    assert_eq!(load.wait(SOON), Some(0));
    let told = read_all(load.0.stdout.take());
    assert!(told.contains(" when stopped"), "{told}");
    assert!(!told.contains("never answered"), "{told}");
}

/// An HTTP server that accepts and keeps silent, and a load that waits for it.
fn load_of_a_silent_server() -> (Running, TcpListener) {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let load = Running::start(&["load", &url, "-d", "60s", "--warm-up", "0", "-c", "2"]);
    (load, silent)
}

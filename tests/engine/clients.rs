//! L-12: a sending thread whose connections see another path is told.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::world::json;

/// An HTTP server that takes 5 ms longer over the newest of its connections.
fn unfair_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let newest = Arc::new(AtomicUsize::new(0));
    thread::spawn(move || {
        for (index, stream) in listener.incoming().enumerate() {
            let (mut stream, newest) = (stream.unwrap(), Arc::clone(&newest));
            newest.store(index, Ordering::SeqCst);
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                while stream.read(&mut buffer).is_ok_and(|length| length > 0) {
                    if newest.load(Ordering::SeqCst) == index {
                        thread::sleep(Duration::from_millis(5));
                    }
                    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                    if stream.write_all(answer).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

#[test]
fn a_thread_that_sees_another_path_is_named() {
    let url = format!("http://{}/", unfair_server());
    let arguments = [
        "load",
        &url,
        "-c",
        "2",
        "-t",
        "2",
        "-d",
        "2s",
        "--warm-up",
        "100ms",
        "--json",
    ];
    // On a machine that others use the good thread may be as slow for once.
    let told = (0..10).any(|_| {
        let load = json(&arguments);
        let threads = load["threads_latency_ns"].as_array().unwrap();
        assert_eq!(threads.len(), 2, "{load}");
        let warnings = load["warnings"].as_array().unwrap();
        let is_meant = |warning: &serde_json::Value| {
            let text = warning.as_str().unwrap();
            text.contains("of the sender saw a p99")
        };
        warnings.iter().any(is_meant)
    });
    assert!(told);
}

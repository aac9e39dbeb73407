//! Clients and servers that take more than their share.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use plumbline_engine::{EngineError, Responder, ServePlan};
use plumbline_experiment::{Protocol, Workload, WorkloadKind};

use crate::rig::{LIMIT, Server, load, loopback_v4, serve, serving, short, workload};

/// Memory of this process that is in RAM, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
    kilobytes.unwrap().parse::<usize>().unwrap() << 10
}

/// 4,000 requests in one write ask for 400 MB.
#[test]
fn answers_are_made_as_the_client_takes_them() {
    const REQUESTS: usize = 4_000;
    const BODY: usize = 100_000;
    let spec = Workload {
        response_size: BODY as u32,
        ..workload(WorkloadKind::Http)
    };
    let server = Server::start(&serving(&spec, loopback_v4()));
    let mut client = TcpStream::connect(server.address).unwrap();
    let before = resident();
    let requests = "GET / HTTP/1.1\r\n\r\n".repeat(REQUESTS);
    client.write_all(requests.as_bytes()).unwrap();
    thread::sleep(Duration::from_millis(300));
    // What others of these tests use meanwhile is far less than that.
    let grown = resident().saturating_sub(before);
    assert!(grown < 150 << 20, "{grown} B");
    // And yet each request gets its answer.
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let received = io::copy(&mut client, &mut io::sink()).unwrap();
    assert!(received > (REQUESTS * BODY) as u64, "{received} B");
    assert_eq!(server.finish().requests, REQUESTS as u64);
}

#[test]
fn connections_beyond_the_limit_are_closed_at_once() {
    let spec = workload(WorkloadKind::Rr);
    let plan = ServePlan {
        connections: 2,
        ..serving(&spec, loopback_v4())
    };
    let server = Server::start(&plan);
    let mut clients = [(); 3].map(|()| {
        let client = TcpStream::connect(server.address).unwrap();
        // The server takes them in this order.
        thread::sleep(Duration::from_millis(50));
        client
    });
    clients[2].set_read_timeout(Some(LIMIT)).unwrap();
    assert_eq!(clients[2].read(&mut [0]).unwrap(), 0);
    let seen = server.finish();
    assert_eq!((seen.connections, seen.turned_away), (2, 1));
}

#[test]
fn a_connection_on_which_nothing_happens_is_closed() {
    let spec = workload(WorkloadKind::Rr);
    let plan = ServePlan {
        idle: Duration::from_millis(100),
        ..serving(&spec, loopback_v4())
    };
    let server = Server::start(&plan);
    let mut client = TcpStream::connect(server.address).unwrap();
    client.write_all(&[1; 10]).unwrap();
    client.set_read_timeout(Some(LIMIT)).unwrap();
    assert_eq!(client.read(&mut [0]).unwrap(), 0, "it hung up");
    server.finish();
}

/// A body that goes on as long as it is read.
#[test]
fn an_answer_without_end_does_not_hold_a_load() {
    let endless = serve(|mut connection| {
        let _ = connection.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        let piece = vec![b'x'; 4 << 20];
        while connection.write_all(&piece).is_ok() {}
    });
    let mut plan = short(workload(WorkloadKind::Http), endless);
    plan.verify = false;
    let start = Instant::now();
    let result = load(&plan);
    // Its phases are 750 ms.
    assert!(start.elapsed() < LIMIT, "{:?}", start.elapsed());
    assert_eq!(result.completed, 0);
}

/// Over UDP a sender's address can be forged, and the answers go there.
#[test]
fn long_answers_over_udp_take_a_secret() {
    let spec = Workload {
        protocol: Protocol::Udp,
        response_size: 65_507,
        ..workload(WorkloadKind::Rr)
    };
    let open = ServePlan::new(spec.clone(), loopback_v4());
    let refused = Responder::bind(&open);
    assert!(
        matches!(&refused, Err(EngineError::Plan(why)) if why.contains("--secret")),
        "{:?}",
        refused.err()
    );
    Responder::bind(&serving(&spec, loopback_v4())).unwrap();
    let short = Workload {
        response_size: spec.request_size,
        ..spec
    };
    Responder::bind(&ServePlan::new(short, loopback_v4())).unwrap();
}

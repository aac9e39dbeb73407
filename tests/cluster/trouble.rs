//! An API server that is slow, and fails now and then: a run goes on through it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::{Cluster, lasting, read, short, statuses};
use crate::observed::ran_to_its_end;
use crate::world::run_directory;

const DELAY: Duration = Duration::from_millis(300);
/// Every so many requests one is refused.
const REFUSED: usize = 7;
const REFUSAL: &str = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"ServiceUnavailable","code":503,"message":"planted"}"#;
/// Of those that open a stream, by which every agent is started, every so many one: more than
/// are opened side by side, so that none is refused twice.
const STREAMS: usize = 10;

/// `kubectl proxy`, which speaks plain HTTP, killed when dropped.
struct Proxy(Child);

impl Proxy {
    /// With its address.
    fn start(cluster: &Cluster) -> (Self, String) {
        let mut proxy = Command::new("kubectl")
            .args(["proxy", "--port=0", "--reject-paths=^$"])
            .env("KUBECONFIG", &cluster.config)
            .stdout(Stdio::piped())
            .spawn()
            .expect("kubectl is installed where there is a cluster");
        let mut line = String::new();
        let said = proxy.stdout.take().unwrap();
        BufReader::new(said).read_line(&mut line).unwrap();
        let address = line.trim().rsplit(' ').next().unwrap().to_owned();
        (Self(proxy), address)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How many came, and how many of them were refused.
#[derive(Default)]
struct Count {
    came: AtomicUsize,
    refused: AtomicUsize,
}

impl Count {
    /// Whether the next one is refused, every so many one.
    fn refuses(&self, every: usize) -> bool {
        let refuses = self.came.fetch_add(1, Ordering::Relaxed) % every == every - 1;
        self.refused.fetch_add(refuses.into(), Ordering::Relaxed);
        refuses
    }

    fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }
}

/// Those that open a stream, and all others.
#[derive(Default)]
struct Counts {
    streams: Count,
    others: Count,
}

/// Passes requests on, each over a connection of its own, for as long as the tests run. Gives
/// where, and how many were refused.
fn relay(to: String) -> (String, Arc<Counts>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let counts = Arc::new(Counts::default());
    let seen = Arc::clone(&counts);
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let (to, counts) = (to.clone(), Arc::clone(&counts));
            // One of them may end in the middle: that is between the two ends.
            thread::spawn(move || pass_on(client, &to, &counts));
        }
    });
    (address, seen)
}

fn pass_on(client: TcpStream, to: &str, counts: &Counts) -> std::io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let lower = head.to_ascii_lowercase();
    let is_upgrade = lower.contains("\r\nupgrade:");
    thread::sleep(DELAY);
    let refusal = match is_upgrade {
        // The client library itself asks again after a 503.
        true => counts.streams.refuses(STREAMS).then_some("502 Bad Gateway"),
        false => counts
            .others
            .refuses(REFUSED)
            .then_some("503 Service Unavailable"),
    };
    if let Some(refusal) = refusal {
        return refuse(reader, client, &lower, refusal);
    }
    if !is_upgrade {
        // So that the next request comes over another connection.
        head.insert_str(head.len() - 2, "Connection: close\r\n");
    }
    let mut server = TcpStream::connect(to)?;
    server.write_all(head.as_bytes())?;
    let (mut back, mut answer) = (server.try_clone()?, client);
    thread::spawn(move || {
        let _ = std::io::copy(&mut reader, &mut server);
        let _ = server.shutdown(Shutdown::Write);
    });
    std::io::copy(&mut back, &mut answer)?;
    answer.shutdown(Shutdown::Both)
}

/// Reads what was asked to its end: a connection that is closed before would be reset.
fn refuse(
    mut reader: BufReader<TcpStream>,
    mut client: TcpStream,
    head: &str,
    refusal: &str,
) -> std::io::Result<()> {
    let length = head.split("\r\ncontent-length:").nth(1);
    let length = length.and_then(|it| it.lines().next()?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    let size = REFUSAL.len();
    write!(
        client,
        "HTTP/1.1 {refusal}\r\nContent-Type: application/json\r\n\
         Content-Length: {size}\r\nConnection: close\r\n\r\n{REFUSAL}"
    )
}

#[test]
fn a_slow_api_server_that_fails_now_and_then_costs_no_trial() {
    let Some(cluster) = lasting() else { return };
    let before = cluster.inventory();
    let (_proxy, address) = Proxy::start(&cluster);
    let (address, counts) = relay(address);
    let config = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "slow", "cluster": { "server": format!("http://{address}") } }],
        "users": [{ "name": "slow", "user": {} }],
        "contexts": [{ "name": "slow", "context": { "cluster": "slow", "user": "slow" } }],
        "current-context": "slow",
    });
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), config.to_string()).unwrap();
    let flags = [
        "--network",
        "pod,cluster-ip",
        "--baseline",
        "pod",
        "--blocks",
        "3",
    ];
    let run = cluster
        .run(&short(&flags))
        .env("KUBECONFIG", file.path())
        .output()
        .unwrap();
    let directory = run_directory(cluster.out());
    ran_to_its_end(&run, &directory);
    let (_, trials) = read(&directory);
    let seen = trials.iter().all(|it| it["observation"].is_object());
    assert!(seen && trials.len() >= 6, "{:?}", statuses(&trials));
    assert!(counts.others.refused() > 0, "no request was refused");
    assert!(counts.streams.refused() > 0, "no stream was refused");
    assert_eq!(cluster.inventory(), before);
}

//! The answer time of the name server that a cluster gives its pods.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plumbline_protocol::{ResolveOrder, ResolvedName};

/// Where a pod is told its name server.
const CONFIGURATION: &str = "/etc/resolv.conf";
/// The service that every cluster has, within the names of its services.
const SERVICE: &str = "kubernetes.default";
/// How the names of its services begin where a pod is to look for names.
const SERVICES: &str = "svc.";
const DNS: u16 = 53;
/// Questions without any answer, after which there is none to be had.
const SILENT: u32 = 4;
/// Longest answer over UDP without extensions (RFC 1035, 4.2.1).
const ANSWER: usize = 512;

/// Asks the name server of a cluster; `None` where this is no pod that has one.
pub(super) fn ask(order: &ResolveOrder, stop: &AtomicBool) -> Option<ResolvedName> {
    let configuration = fs::read_to_string(CONFIGURATION).ok()?;
    let (server, name) = of_cluster(&configuration)?;
    let mut seen = ResolvedName {
        server,
        name,
        asked: 0,
        answers_ns: Vec::new(),
        error: None,
    };
    let patience = Duration::from_nanos(order.wait_ns);
    for id in 0..order.count {
        let is_silent = seen.answers_ns.is_empty() && seen.asked == SILENT;
        if is_silent || stop.load(Ordering::SeqCst) {
            break;
        }
        seen.asked += 1;
        match once(server, DNS, &seen.name, id as u16, patience) {
            Ok(took) => seen.answers_ns.push(took.as_nanos() as u64),
            Err(error) => seen.error = Some(error.to_string()),
        }
    }
    Some(seen)
}

/// The first name server, and the name to ask for, where a pod is told to look for services.
pub(super) fn of_cluster(configuration: &str) -> Option<(IpAddr, String)> {
    let values = |key: &'static str| {
        let lines = configuration.lines().map(str::split_whitespace);
        lines
            .filter_map(move |mut words| (words.next() == Some(key)).then_some(words))
            .flatten()
    };
    let server = values("nameserver").find_map(|it| it.parse().ok())?;
    let services = values("search").find(|it| it.starts_with(SERVICES))?;
    Some((server, format!("{SERVICE}.{services}")))
}

/// Asks once, from a port of its own, as programs do. Any answer will do, also that there is no
/// such name.
fn once(
    server: IpAddr,
    port: u16,
    name: &str,
    id: u16,
    patience: Duration,
) -> io::Result<Duration> {
    let here: IpAddr = match server {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((here, 0))?;
    socket.connect((server, port))?;
    let since = Instant::now();
    socket.send(&question(id, name))?;
    let mut answer = [0; ANSWER];
    loop {
        let left = patience.saturating_sub(since.elapsed());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        socket.set_read_timeout(Some(left))?;
        match socket.recv(&mut answer) {
            Ok(length) if is_answer(&answer[..length], id) => return Ok(since.elapsed()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Err(error) => return Err(error),
        }
    }
}

/// A question for the IPv4 address of a name (RFC 1035, 4.1).
pub(super) fn question(id: u16, name: &str) -> Vec<u8> {
    let mut bytes = id.to_be_bytes().to_vec();
    // Recursion desired; one question, nothing else.
    bytes.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.split('.').filter(|label| !label.is_empty()) {
        // The names of a cluster's services are made of labels of at most 63 bytes.
        bytes.push(label.len().min(63) as u8);
        bytes.extend(label.bytes().take(63));
    }
    // The root; type A, class IN.
    bytes.extend([0, 0, 1, 0, 1]);
    bytes
}

/// Whether it answers the question of this number.
pub(super) fn is_answer(bytes: &[u8], id: u16) -> bool {
    let is_response = bytes.get(2).is_some_and(|flags| flags & 0x80 != 0);
    is_response && bytes.starts_with(&id.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn a_pod_is_known_by_where_it_looks_for_services() {
        let pod = "search a.svc.cluster.local svc.cluster.local cluster.local\n\
                   nameserver 10.96.0.10\noptions ndots:5\n";
        let name = "kubernetes.default.svc.cluster.local".to_owned();
        assert_eq!(of_cluster(pod), Some(([10, 96, 0, 10].into(), name)));
        assert_eq!(
            of_cluster("nameserver 192.0.2.1\nsearch example.org\n"),
            None
        );
        assert_eq!(of_cluster("search svc.cluster.local\n"), None);
    }

    #[test]
    fn a_question_is_what_a_name_server_reads() {
        let asked = question(7, "ab.c");
        let expected = [
            0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 2, b'a', b'b', 1, b'c', 0, 0, 1, 0, 1,
        ];
        assert_eq!(asked, expected);
        assert!(!is_answer(&asked, 7));
    }

    #[test]
    fn an_answer_to_another_question_is_passed_over_and_silence_has_an_end() {
        let server = UdpSocket::bind((HERE, 0)).unwrap();
        let port = server.local_addr().unwrap().port();
        let answers = thread::spawn(move || {
            let mut bytes = [0; ANSWER];
            let (length, from) = server.recv_from(&mut bytes).unwrap();
            bytes[2] |= 0x80;
            bytes[1] ^= 1;
            server.send_to(&bytes[..length], from).unwrap();
            bytes[1] ^= 1;
            server.send_to(&bytes[..length], from).unwrap();
            server
        });
        once(HERE, port, "a.b", 2, Duration::from_secs(20)).expect("the second is the answer");
        let server = answers.join().unwrap();
        let silent = once(HERE, port, "a.b", 3, Duration::from_millis(30)).unwrap_err();
        assert_eq!(silent.kind(), io::ErrorKind::TimedOut);
        drop(server);
    }
}

//! The mode of a node's kube-proxy, which it reports to any process on its
//! node.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// Where kube-proxy has its metrics by default, on the node's loopback only.
const PORT: u16 = 10_249;

/// It is on this machine, so it answers at once or not at all.
const ANSWER: Duration = Duration::from_millis(300);

/// HTTP/1.0, so that the answer ends with the connection.
const REQUEST: &[u8] = b"GET /proxyMode HTTP/1.0\r\nHost: localhost\r\n\r\n";

/// A longer answer is not kube-proxy's.
const MOST: u64 = 4 << 10;

/// Its mode, such as `iptables`; `None` when nothing like it answers here.
pub(crate) fn mode() -> Option<String> {
    ask((Ipv4Addr::LOCALHOST, PORT).into())
}

fn ask(address: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER).ok()?;
    stream.set_read_timeout(Some(ANSWER)).ok()?;
    stream.set_write_timeout(Some(ANSWER)).ok()?;
    stream.write_all(REQUEST).ok()?;
    let mut answer = String::new();
    stream.take(MOST).read_to_string(&mut answer).ok()?;
    read(&answer)
}

/// The mode in an answer.
pub(crate) fn read(answer: &str) -> Option<String> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let fine = head.lines().next()?.split(' ').nth(1)? == "200";
    let mode = body.trim();
    let plain =
        !mode.is_empty() && mode.len() < 32 && mode.bytes().all(|b| b.is_ascii_alphabetic());
    (fine && plain).then(|| mode.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_is_what_kube_proxy_answers_and_nothing_else() {
        let answer = "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\niptables";
        assert_eq!(read(answer).as_deref(), Some("iptables"));
        assert_eq!(read("HTTP/1.0 404 Not Found\r\n\r\nnothing"), None);
        assert_eq!(read("HTTP/1.0 200 OK\r\n\r\n<html>"), None);
        assert_eq!(read("SSH-2.0-OpenSSH"), None);
    }

    #[test]
    fn it_is_asked_over_http() {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // Read all of it: unread bytes would reset the connection on close.
            let mut request = vec![0; REQUEST.len()];
            stream.read_exact(&mut request).unwrap();
            stream
                .write_all(b"HTTP/1.0 200 OK\r\n\r\nnftables")
                .unwrap();
            request
        });
        assert_eq!(ask(address).as_deref(), Some("nftables"));
        assert_eq!(server.join().unwrap(), REQUEST);
        assert_eq!(ask(address), None);
    }
}

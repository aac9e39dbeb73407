//! A made-up API server, for tests.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::session::ClusterConnection;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// What it does with a request.
#[derive(Clone, Copy)]
pub(crate) enum Reply {
    /// Closes the connection.
    Nothing,
    /// Says that what was asked for is an empty list now.
    Gone,
    /// Refuses with a code, a reason and a message.
    Status(u16, &'static str, &'static str),
}

impl Reply {
    fn body(self) -> Option<(u16, Value)> {
        match self {
            Self::Nothing => None,
            Self::Gone => Some((
                200,
                json!({ "kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [] }),
            )),
            Self::Status(code, reason, message) => Some((
                code,
                json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                    "code": code, "reason": reason, "message": message }),
            )),
        }
    }
}

/// Serves until the process ends.
pub(crate) struct PlantedServer {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl PlantedServer {
    /// Gives these replies in turn, and then the last one to everything.
    pub(crate) fn start(first: impl IntoIterator<Item = Reply>, then: Reply) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&asked);
        let mut replies: Vec<Reply> = first.into_iter().collect();
        replies.reverse();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                heard.lock().unwrap().push(read_request(&stream));
                answer(stream, replies.pop().unwrap_or(then));
            }
        });
        Self { address, asked }
    }

    /// Method and path of all requests so far.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn session(&self) -> ClusterConnection {
        let server = format!("http://{}", self.address);
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "contexts": [{ "name": "x", "context": { "cluster": "x", "user": "x" } }],
            "clusters": [{ "name": "x", "cluster": { "server": server } }],
            "users": [{ "name": "x", "user": {} }],
        });
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), config.to_string()).unwrap();
        ClusterConnection::open(Some(file.path()), None, &INTERRUPTED).unwrap()
    }
}

/// The method and the path; the body is read too, so that closing resets nothing.
fn read_request(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim() {
            "" => break,
            line => lines.push(line.to_ascii_lowercase()),
        }
        if lines.len() == 1 {
            lines[0] = line.trim().to_owned();
        }
    }
    let length = lines
        .iter()
        .find_map(|it| it.strip_prefix("content-length: "));
    let length: u64 = length.map_or(0, |it| it.parse().unwrap());
    reader.take(length).read_to_end(&mut Vec::new()).unwrap();
    lines.swap_remove(0)
}

fn answer(mut stream: TcpStream, reply: Reply) {
    let Some((code, body)) = reply.body() else {
        return;
    };
    let body = body.to_string();
    // The other side may have gone, as in a test that has failed.
    let _ = write!(
        stream,
        "HTTP/1.1 {code} X\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
}

//! A made-up API server, for tests.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::manifest::RUN;
use crate::session::ClusterConnection;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// What it does with a request.
#[derive(Clone, Copy)]
pub(crate) enum Reply {
    /// Closes the connection.
    Nothing,
    /// Says that what was asked for is an empty list now.
    Gone,
    /// Says that what was sent is there now.
    Echo,
    /// Lists one object, which the run of this word made long ago.
    Left(&'static str),
    /// Sends this.
    Text(&'static str),
    /// Refuses with a code, a reason and a message.
    Status(u16, &'static str, &'static str),
}

impl Reply {
    /// Says which version it is.
    pub(crate) const VERSION: Self = Self::Text(
        r#"{"major":"1","minor":"33","gitVersion":"v1.33.0","gitCommit":"","gitTreeState":"",
            "buildDate":"","goVersion":"","compiler":"","platform":""}"#,
    );

    fn body(self, sent: &str) -> Option<(u16, String)> {
        if let Self::Text(text) = self {
            return Some((200, text.to_owned()));
        }
        let (code, body) = self.json(sent)?;
        Some((code, body.to_string()))
    }

    fn json(self, sent: &str) -> Option<(u16, Value)> {
        let list = |items: &[Value]| json!({ "kind": "List", "apiVersion": "v1", "metadata": {}, "items": items });
        match self {
            Self::Nothing | Self::Text(_) => None,
            Self::Gone => Some((200, list(&[]))),
            Self::Echo => Some((200, serde_json::from_str(sent).unwrap())),
            Self::Left(run) => {
                let metadata = json!({ "name": "own-pods", "labels": { RUN: run },
                    "creationTimestamp": "2026-01-01T00:00:00Z" });
                Some((200, list(&[json!({ "metadata": metadata })])))
            }
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
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// A request: its method and path, and its body.
type Asked = (String, String);

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
                let asked = read_request(&stream);
                let reply = replies.pop().unwrap_or(then).body(&asked.1);
                heard.lock().unwrap().push(asked);
                answer(stream, reply);
            }
        });
        Self { address, asked }
    }

    /// Method and path of all requests so far.
    pub(crate) fn asked(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked.iter().map(|(line, _)| line.clone()).collect()
    }

    /// What the request of this number, from 0, brought.
    pub(crate) fn body(&self, number: usize) -> String {
        self.asked.lock().unwrap()[number].1.clone()
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

fn read_request(stream: &TcpStream) -> Asked {
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
    let mut body = String::new();
    reader.take(length).read_to_string(&mut body).unwrap();
    (lines.swap_remove(0), body)
}

fn answer(mut stream: TcpStream, reply: Option<(u16, String)>) {
    let Some((code, body)) = reply else {
        return;
    };
    // The other side may have gone, as in a test that has failed.
    let _ = write!(
        stream,
        "HTTP/1.1 {code} X\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
}

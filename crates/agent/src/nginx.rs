//! nginx as the receiver, where an experiment asks for it.
//!
//! One process without a master, because a master's workers would outlive it:
//! this process is killed by the kernel when its agent ends in any way. It gets
//! its own directory with a configuration and the body as a static file; both
//! are removed as soon as nginx holds them open, so that nothing stays behind
//! even when everything is killed a moment later.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plumbline_experiment::{HttpServer, Workload};
use plumbline_protocol::{MissingServer, ServeOrder};
use plumbline_record::ServeResult;
use plumbline_sys::cpu::{self, ProcessTime};
use plumbline_sys::process::{Child, Command, ProcessError};
use plumbline_sys::temporary;

/// Where packages install it; that directory is not in every search path.
const USUAL_PLACES: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/usr/local/nginx/sbin"];

/// Longest wait for nginx to start, and for one of its answers.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why nginx could not be the receiver.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NginxError {
    #[error(
        "cannot prepare nginx: {0}; is there space, and may files be made, in the directory for temporary files?"
    )]
    Prepare(#[source] io::Error),
    #[error("nginx does not run: {0}; its own message says what is missing")]
    Process(#[from] ProcessError),
    #[error("nginx ended before it was stopped")]
    Ended,
    #[error("nginx did not answer in time: {0}; is this machine overloaded?")]
    Silent(#[source] io::Error),
    #[error("nginx answered `{0}` instead of its request counts; it needs its module stub_status")]
    NoStatus(String),
    #[error("the CPU time of nginx cannot be read: {0}")]
    Cpu(#[source] io::Error),
}

/// Checks that this machine has the program that is to answer.
///
/// # Errors
///
/// It has not.
pub fn check_server(server: HttpServer) -> Result<(), MissingServer> {
    match server {
        HttpServer::Plumbline => Ok(()),
        HttpServer::Nginx => installed().map(drop),
    }
}

/// What can answer an HTTP workload on this machine.
pub(crate) fn servers() -> Vec<HttpServer> {
    let known = [HttpServer::Plumbline, HttpServer::Nginx].into_iter();
    known.filter(|it| check_server(*it).is_ok()).collect()
}

/// The program.
pub(crate) fn installed() -> Result<PathBuf, MissingServer> {
    let searched = std::env::var_os("PATH").unwrap_or_default();
    let usual = USUAL_PLACES.map(PathBuf::from);
    find(std::env::split_paths(&searched).chain(usual))
}

/// The program, in the first of these directories that has it.
fn find(directories: impl IntoIterator<Item = PathBuf>) -> Result<PathBuf, MissingServer> {
    let mut programs = directories
        .into_iter()
        .map(|directory| directory.join("nginx"));
    programs
        .find(|program| program.is_file())
        .ok_or(MissingServer)
}

/// A running nginx. It is killed when dropped.
pub(crate) struct Nginx {
    child: Child,
    status: UnixStream,
    address: SocketAddr,
    version: String,
    workload: Workload,
    before: StubStatus,
}

/// What nginx has counted since its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StubStatus {
    connections: u64,
    requests: u64,
}

impl Nginx {
    /// Starts nginx on the CPUs and the address of an order, and waits until it
    /// answers.
    pub(crate) fn start(program: &Path, order: &ServeOrder) -> Result<Self, NginxError> {
        // nginx may read it as any user.
        let directory = temporary::directory("nginx", 0o755).map_err(NginxError::Prepare)?;
        let address = free_port(order).map_err(NginxError::Prepare)?;
        // nginx resolves other paths against its prefix, but this one against its working directory.
        let socket = directory.path().join("status");
        let size = order.workload.response_size;
        let write = |name: &str, content: &[u8]| {
            fs::write(directory.path().join(name), content).map_err(NginxError::Prepare)
        };
        write("body", &plumbline_engine::http_body(size))?;
        let text = configuration(address, &socket, &order.workload);
        write("nginx.conf", text.as_bytes())?;
        if !order.cpus.is_empty() {
            // The process inherits what its thread may use.
            cpu::allow_thread(&order.cpus).map_err(NginxError::Prepare)?;
        }
        let mut child = Command::new(program)
            .args(["-e", "stderr", "-p"])
            .args([directory.path().as_os_str()])
            .args(["-c", "nginx.conf"])
            .spawn()?;
        let mut status = connect(&socket, &mut child)?;
        let mut version = String::new();
        let before = ask_status(&mut status, &mut version)?;
        // After the first request, the body stays open in nginx's file cache.
        ask(&mut status, "/").map_err(NginxError::Silent)?;
        let before = StubStatus {
            requests: before.requests + 1,
            ..before
        };
        Ok(Self {
            child,
            status,
            address,
            version,
            workload: order.workload.clone(),
            before,
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// An error when it has ended.
    pub(crate) fn check(&mut self) -> Result<(), NginxError> {
        match self.child.wait(Duration::ZERO) {
            Err(ProcessError::StillRunning { .. }) => Ok(()),
            Err(error) => Err(error.into()),
            Ok(()) => Err(NginxError::Ended),
        }
    }

    /// Its CPU time since it started.
    pub(crate) fn cpu(&self) -> Result<ProcessTime, NginxError> {
        cpu::time_of(self.child.pid()).map_err(NginxError::Cpu)
    }

    /// What it served, by its own account; then it is killed.
    pub(crate) fn stop(mut self) -> Result<ServeResult, NginxError> {
        let after = ask_status(&mut self.status, &mut self.version)?;
        self.child.kill();
        // It counts this request too.
        let requests = after.requests.saturating_sub(self.before.requests + 1);
        Ok(ServeResult {
            server: self.version,
            connections: after.connections.saturating_sub(self.before.connections),
            requests,
            bytes_sent: requests * u64::from(self.workload.response_size),
            ..ServeResult::default()
        })
    }
}

/// One process that answers every path with the body. Connections are never
/// closed for their age or their number of requests, and no request is logged:
/// either would be measured along with the network.
///
/// When it runs as root, nginx gives its directories to `nobody`, a user that
/// does not exist in an ordinary user's user namespace; so they stay ours.
fn configuration(address: SocketAddr, socket: &Path, workload: &Workload) -> String {
    let connections = workload.connections.saturating_mul(2).max(128) + 16;
    let socket = socket.display();
    let keep_alive = if workload.keep_alive { "1h" } else { "0" };
    format!(
        "user root; daemon off; master_process off; pid nginx.pid;
error_log stderr crit;
events {{ worker_connections {connections}; }}
http {{
  access_log off;
  client_body_temp_path temp; proxy_temp_path temp; fastcgi_temp_path temp;
  uwsgi_temp_path temp; scgi_temp_path temp;
  default_type application/octet-stream;
  sendfile on;
  open_file_cache max=8 inactive=24h;
  open_file_cache_valid 24h;
  keepalive_requests 1000000000;
  server {{
    listen {address} backlog=4096;
    keepalive_timeout {keep_alive};
    location / {{ root .; rewrite ^ /body break; }}
  }}
  server {{
    listen unix:{socket};
    keepalive_timeout 24h;
    location / {{ root .; rewrite ^ /body break; }}
    location = /status {{ stub_status; }}
  }}
}}
"
    )
}

/// An address of the order's with a port that is free now. Between this and
/// nginx's own listening, a program in the same namespace might take it; nginx
/// then says so and the trial fails.
fn free_port(order: &ServeOrder) -> io::Result<SocketAddr> {
    TcpListener::bind((order.address, order.port))?.local_addr()
}

/// The connection over which nginx is asked for its counts. It is made once,
/// since its socket's name goes away with the directory.
fn connect(socket: &Path, child: &mut Child) -> Result<UnixStream, NginxError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => {
                stream
                    .set_read_timeout(Some(PATIENCE))
                    .map_err(NginxError::Silent)?;
                return Ok(stream);
            }
            Err(error) if Instant::now() >= deadline => return Err(NginxError::Silent(error)),
            Err(_) => match child.wait(Duration::from_millis(1)) {
                Err(ProcessError::StillRunning { .. }) => {}
                Err(error) => return Err(error.into()),
                Ok(()) => return Err(NginxError::Ended),
            },
        }
    }
}

fn ask_status(status: &mut UnixStream, version: &mut String) -> Result<StubStatus, NginxError> {
    let answer = ask(status, "/status").map_err(NginxError::Silent)?;
    *version = server_of(&answer).unwrap_or("nginx").to_owned();
    counts_of(&answer).ok_or(NginxError::NoStatus(answer))
}

/// One answer, head and body, as far as it is text.
fn ask(stream: &mut UnixStream, path: &str) -> io::Result<String> {
    write!(stream, "GET {path} HTTP/1.1\r\nHost: status\r\n\r\n")?;
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let length = stream.read(&mut piece)?;
        answer.extend_from_slice(&piece[..length]);
        if length == 0 || is_whole(&answer) {
            return Ok(String::from_utf8_lossy(&answer).into_owned());
        }
    }
}

/// Whether an answer holds as many bytes behind its head as that promises.
pub(crate) fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else {
        return false;
    };
    let head = String::from_utf8_lossy(&answer[..end]);
    let length = value_of(&head, "content-length").and_then(|value| value.parse::<usize>().ok());
    length.is_some_and(|length| answer.len() - (end + 4) >= length)
}

pub(crate) fn server_of(answer: &str) -> Option<&str> {
    value_of(answer, "server")
}

fn value_of<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// The line of stub_status below `server accepts handled requests`.
pub(crate) fn counts_of(answer: &str) -> Option<StubStatus> {
    let mut lines = answer.lines();
    lines.find(|line| line.contains("accepts handled requests"))?;
    let mut numbers = lines
        .next()?
        .split_whitespace()
        .map(|number| number.parse());
    let connections = numbers.next()?.ok()?;
    let requests = numbers.nth(1)?.ok()?;
    Some(StubStatus {
        connections,
        requests,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nContent-Length: 97\r\n\r\n\
        Active connections: 1 \nserver accepts handled requests\n 3 3 17 \n\
        Reading: 0 Writing: 1 Waiting: 0 \n";

    #[test]
    fn nginx_is_understood_about_itself() {
        assert_eq!(server_of(ANSWER), Some("nginx/1.22.1"));
        let counts = counts_of(ANSWER).unwrap();
        assert_eq!((counts.connections, counts.requests), (3, 17));
        assert_eq!(counts_of("HTTP/1.1 404 Not Found\r\n\r\n"), None);
    }

    #[test]
    fn where_there_is_none_nothing_else_answers() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_owned();
        let error = find([path.clone()]).unwrap_err().to_string();
        assert!(error.contains("install the package `nginx`"), "{error}");
        fs::write(path.join("nginx"), "").unwrap();
        assert_eq!(find([path.clone()]).unwrap(), path.join("nginx"));
    }

    #[test]
    fn an_answer_is_whole_when_its_body_is() {
        let length = ANSWER.len() - ANSWER.find("\r\n\r\n").unwrap() - 4;
        let answer = ANSWER.replace("97", &length.to_string());
        assert!(is_whole(answer.as_bytes()));
        assert!(!is_whole(&answer.as_bytes()[..answer.len() - 1]));
        assert!(!is_whole(b"HTTP/1.1 200 OK\r\n"));
    }
}

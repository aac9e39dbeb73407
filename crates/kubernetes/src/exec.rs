//! Programs in pods, and their streams.

use std::future::Future;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::api::{Api, AttachParams, AttachedProcess};
use plumbline_harness::{AgentLink, AgentProcess, TargetError};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::runtime::Handle;

use crate::ClusterError;
use crate::manifest::PROGRAM;
use crate::pods::RunningPod;
use crate::session::ClusterConnection;

/// What the pipes to and from the connection hold. A ping of the harness has
/// some 30 bytes, a result 100 KB.
const PIPE: usize = 64 << 10;

/// Longest time in which a connection may accept nothing.
const STUCK: Duration = Duration::from_secs(5);

/// Least wait for the end of a process: kubelet and API server pass the news on.
const FAREWELL: Duration = Duration::from_secs(3);

/// Most bytes that are kept of what a process writes to standard error.
const MOST_ERROR_TEXT: usize = 4 << 10;

/// Starts the program in a pod with arguments.
pub(crate) fn start(
    session: &ClusterConnection,
    pod: &RunningPod,
    arguments: &[&str],
) -> Result<AgentLink, ClusterError> {
    let api: Api<Pod> = Api::namespaced(session.client(), &pod.namespace);
    let what = format!("start a program in pod {}/{}", pod.namespace, pod.name);
    let mut command = vec![PROGRAM];
    command.extend(arguments);
    let params = AttachParams {
        stdin: true,
        max_stdin_buf_size: Some(PIPE),
        max_stdout_buf_size: Some(PIPE),
        container: pod.container.clone(),
        ..AttachParams::default()
    };
    let mut attached = connect(session, &what, || {
        api.exec(&pod.name, command.clone(), &params)
    })?;
    let lost = || ClusterError::Refused {
        what: what.clone(),
        message: "a stream is missing".to_owned(),
    };
    let handle = session.runtime().handle().clone();
    let input = Box::new(attached.stdin().ok_or_else(lost)?);
    let output = Box::new(attached.stdout().ok_or_else(lost)?);
    let errors = attached.stderr().ok_or_else(lost)?;
    let ended = attached.take_status().ok_or_else(lost)?;
    let said = Arc::new(Mutex::new(String::new()));
    handle.spawn(keep(errors, Arc::clone(&said)));
    Ok(AgentLink {
        input: Box::new(Input {
            handle: handle.clone(),
            pipe: input,
        }),
        output: Box::new(Output {
            handle: handle.clone(),
            pipe: output,
        }),
        process: Box::new(Process {
            handle,
            attached,
            ended: Some(Box::pin(ended)),
            said,
        }),
    })
}

/// Waits for an API server that does not answer or not do its work, but not for a kubelet: one
/// that is silent while the API server answers may stay so.
fn connect<F: Future<Output = kube::Result<AttachedProcess>>>(
    session: &ClusterConnection,
    what: &str,
    request: impl Fn() -> F,
) -> Result<AttachedProcess, ClusterError> {
    match session.call(what, request()) {
        Err(error) if error.is_away() => {}
        other => return other,
    }
    let client = session.client();
    session.patiently("report its version", || client.apiserver_version())?;
    session.call(what, request()).map_err(|error| match error {
        ClusterError::Away { why, .. } | ClusterError::Troubled { message: why, .. } => {
            ClusterError::Refused {
                what: what.to_owned(),
                message: format!(
                    "{why}, while the API server answers; is the kubelet of its node healthy?"
                ),
            }
        }
        other => other,
    })
}

/// Keeps the beginning of what is written to standard error; reads all of it, so
/// that the program never waits for the reader.
async fn keep(mut errors: impl AsyncRead + Unpin, said: Arc<Mutex<String>>) {
    let mut buffer = [0; 512];
    while let Ok(bytes @ 1..) = errors.read(&mut buffer).await {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len() < MOST_ERROR_TEXT {
            said.push_str(&String::from_utf8_lossy(&buffer[..bytes]));
        }
    }
}

struct Input {
    handle: Handle,
    pipe: Box<dyn AsyncWrite + Send + Unpin>,
}

impl Write for Input {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let write = async { tokio::time::timeout(STUCK, self.pipe.write(bytes)).await };
        self.handle
            .block_on(write)
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.handle.block_on(self.pipe.flush())
    }
}

struct Output {
    handle: Handle,
    pipe: Box<dyn AsyncRead + Send + Unpin>,
}

impl Read for Output {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.handle.block_on(self.pipe.read(bytes))
    }
}

/// How a program ended, as the API server reports it, with the cause where that is
/// not the program: the API server opens a stream before it asks the kubelet.
fn explained(said: String) -> String {
    let unasked = ["error sending request", "error dialing backend"];
    if unasked.iter().any(|part| said.contains(part)) {
        return format!(
            "the API server cannot reach the kubelet of its node: {said}; is that node healthy?"
        );
    }
    said
}

/// A program in a pod, as far as it is seen from here.
struct Process {
    handle: Handle,
    attached: AttachedProcess,
    /// Taken once the end has been reported.
    ended: Option<BoxFuture<'static, Option<Status>>>,
    said: Arc<Mutex<String>>,
}

impl AgentProcess for Process {
    /// Cuts the connection; the kubelet then closes the program's input, which
    /// ends an agent.
    fn kill(&mut self) {
        self.attached.abort();
    }

    fn wait(&mut self, limit: Duration) -> Result<(), TargetError> {
        let Some(ended) = &mut self.ended else {
            return Ok(());
        };
        let limit = limit.max(FAREWELL);
        let wait = async { tokio::time::timeout(limit, ended).await };
        let Ok(status) = self.handle.block_on(wait) else {
            return Err(TargetError::Failed(format!(
                "it did not end within {} s",
                limit.as_secs_f64()
            )));
        };
        self.ended = None;
        let why = match status {
            Some(status) if status.status.as_deref() == Some("Success") => return Ok(()),
            Some(status) => explained(status.message.unwrap_or_default()),
            None => "the connection to its pod was lost".to_owned(),
        };
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        Err(TargetError::Failed(match said.trim() {
            "" => why,
            said => said.to_owned(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planted::{PlantedServer, Reply};

    /// Starts a program where these are the replies, and gives why it did not.
    fn refused(server: &PlantedServer) -> String {
        let pod = RunningPod::default();
        let started = start(&server.session(), &pod, &["agent"]);
        started.err().expect("nothing is upgraded").to_string()
    }

    /// As what is before an API server answers while that is replaced.
    #[test]
    fn a_stream_that_is_refused_for_trouble_is_asked_for_again() {
        let bad = Reply::Status(502, "BadGateway", "planted");
        let server = PlantedServer::start([bad, Reply::VERSION], bad);
        let told = refused(&server);
        assert!(
            told.contains("502 Bad Gateway, while the API server answers"),
            "{told}"
        );
        let asked = server.asked();
        assert_eq!(asked.len(), 3, "{asked:?}");
        assert!(asked[1].contains("/version"), "{asked:?}");
        assert!(asked[2].contains("/exec?"), "{asked:?}");
    }

    #[test]
    fn a_stream_that_is_refused_for_good_is_not() {
        let server = PlantedServer::start([], Reply::Status(404, "NotFound", "planted"));
        let told = refused(&server);
        assert!(told.contains("404 Not Found"), "{told}");
        assert_eq!(server.asked().len(), 1);
    }
}

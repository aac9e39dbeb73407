//! One host: the connection, the program on it, and the agents.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::IpAddr;
use std::panic::resume_unwind;
use std::process::ChildStdout;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use plumbline_harness::{AgentLink, Launched, Observer, TargetError};
use plumbline_sys::process::{Child, ProcessError};

use crate::error::HostsError;
use crate::options::HostsOptions;
use crate::program::Program;
use crate::script::{self, At};
use crate::ssh::{SSH_ITSELF, Ssh, SshSession, explain, last_words};

/// Longest wait for the login and for the place where the program goes; ssh
/// itself gives up connecting after ten seconds.
const ENTRY: Duration = Duration::from_secs(30);
/// Longest wait for the program to arrive.
const COPY: Duration = Duration::from_secs(600);
/// What a first session is in the middle of until the agent on the host is greeted.
const LOGIN: &str = " at the login";
const COPYING: &str = " while the program was copied";
/// How long a session may take to end when asked to.
const END: Duration = Duration::from_secs(5);
/// How often a wait looks whether the user wants to stop.
const TICK: Duration = Duration::from_millis(100);
/// Lines of others, such as a shell's greeting, that are read over.
const MOST_LINES: usize = 1000;
/// Bytes of such a line that are held at a time.
const LONGEST_LINE: u64 = 4096;

/// A host with the program on it. Dropping it ends the agents, and the host's
/// shell removes the program.
pub(crate) struct ConnectedHost {
    ssh: Ssh,
    observer: Observer,
    at: At,
    running: Launched,
}

impl ConnectedHost {
    /// Connects, copies the program and starts the observer.
    pub(crate) fn open(
        ssh: Ssh,
        options: &HostsOptions,
        program: &Arc<Program>,
    ) -> Result<Self, HostsError> {
        let mut child = ssh
            .command(
                SshSession::First,
                &script::install(&options.directory, program.size),
            )
            .spawn_untied()?;
        let (Some(mut input), Some(output)) = (child.take_stdin(), child.take_stdout()) else {
            unreachable!("a command pipes both streams");
        };
        let host = ssh.host.clone();
        let ended = |child: &mut Child, why, stage| gone((&host, stage), child, program, why);
        let stop = options.interrupted;
        let first = line(BufReader::new(output), ENTRY, stop, At::parse);
        let (at, output) = first.map_err(|why| ended(&mut child, why, LOGIN))?;
        check_machine(&host, &at, program)?;
        // A write cannot be given up; the thread ends when ssh does.
        let copied = Arc::clone(program);
        let sending = thread::spawn(move || copied.copy_to(&mut input).map(|()| input));
        let copied = |text: &str| (text.trim_end() == script::COPIED).then_some(());
        // The host's own error says more than a broken pipe.
        let ((), output) =
            line(output, COPY, stop, copied).map_err(|why| ended(&mut child, why, COPYING))?;
        let sent = sending.join().unwrap_or_else(|panic| resume_unwind(panic));
        let input = sent.map_err(|error| {
            HostsError::on(&host, format!("the program could not be sent: {error}"))
        })?;
        let link = AgentLink {
            input: Box::new(input),
            output: Box::new(output),
            process: Launched::default().process(child, session_error(&host)),
        };
        let observer = Observer::over(&host, link)?;
        Ok(Self {
            ssh,
            observer,
            at,
            running: Launched::default(),
        })
    }

    /// The host as it was given.
    pub(crate) fn host(&self) -> &str {
        &self.ssh.host
    }

    /// The address that ssh connected to, as the host sees it.
    pub(crate) fn connected(&self) -> Option<IpAddr> {
        self.at.connected
    }

    /// The agent that looks at the host.
    pub(crate) fn observer(&self) -> &Observer {
        &self.observer
    }

    /// How agents are started.
    pub(crate) fn launcher(&self) -> SshLauncher {
        SshLauncher {
            ssh: self.ssh.clone(),
            command: script::agent(&self.at.directory),
            running: self.running.clone(),
        }
    }

    /// Ends every agent that a harness forgot, and waits until the host has
    /// removed the program.
    pub(crate) fn close(&self) -> Result<(), HostsError> {
        self.running.end_all(END);
        self.observer.end(END).map_err(|error| {
            let directory = &self.at.directory;
            let why = format!("{error}; look whether {directory} is still there, and remove it");
            HostsError::on(&self.ssh.host, why)
        })
    }
}

impl Drop for ConnectedHost {
    fn drop(&mut self) {
        self.running.end_all(END);
    }
}

/// Starts agents on a host.
#[derive(Clone)]
pub(crate) struct SshLauncher {
    ssh: Ssh,
    command: String,
    running: Launched,
}

impl SshLauncher {
    pub(crate) fn start(&self) -> Result<AgentLink, TargetError> {
        let command = self.ssh.command(SshSession::Later, &self.command);
        let child = command.spawn_untied().map_err(HostsError::from)?;
        let explain = session_error(&self.ssh.host);
        Ok(self.running.link(child, explain))
    }
}

/// Why a line did not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NoLine {
    /// The stream ended, or others said too much.
    Ended,
    /// The time was over.
    TimeOver,
    /// The user wants to stop.
    Interrupted,
}

/// Reads lines until one is `wanted`, at most for `limit`; gives the stream back.
fn line<T: Send + 'static>(
    mut output: BufReader<ChildStdout>,
    limit: Duration,
    interrupted: &AtomicBool,
    wanted: fn(&str) -> Option<T>,
) -> Result<(T, BufReader<ChildStdout>), NoLine> {
    let (sender, found) = mpsc::channel();
    // A read cannot be given up; the thread ends when the stream does.
    thread::spawn(move || {
        for _ in 0..MOST_LINES {
            let mut text = Vec::new();
            // A longer line comes in parts, each of which counts.
            match (&mut output)
                .take(LONGEST_LINE)
                .read_until(b'\n', &mut text)
            {
                Ok(1..) => {}
                _ => return,
            }
            if let Some(value) = wanted(&String::from_utf8_lossy(&text)) {
                // A receiver that is gone has given up.
                let _ = sender.send((value, output));
                return;
            }
        }
    });
    let deadline = Instant::now() + limit;
    loop {
        match found.recv_timeout(TICK) {
            Ok(found) => return Ok(found),
            Err(RecvTimeoutError::Disconnected) => return Err(NoLine::Ended),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if interrupted.load(Ordering::SeqCst) {
            return Err(NoLine::Interrupted);
        }
        if Instant::now() > deadline {
            return Err(NoLine::TimeOver);
        }
    }
}

fn check_machine(host: &str, at: &At, program: &Program) -> Result<(), HostsError> {
    if at.system == "Linux" && at.machine == program.machine {
        return Ok(());
    }
    let why = format!(
        "it is {} on {}, and this program is for Linux on {}; give a program for it with --program",
        at.system, at.machine, program.machine
    );
    Err(HostsError::on(host, why))
}

/// Why the first session ended before it was ready.
fn gone(
    (host, stage): (&str, &'static str),
    child: &mut Child,
    program: &Program,
    why: NoLine,
) -> HostsError {
    if why == NoLine::Interrupted {
        child.kill();
        return HostsError::Interrupted;
    }
    let error = match child.wait(END) {
        Ok(()) => {
            let why = "the session ended without output; does authorized_keys force a command \
                       on your key?";
            return HostsError::on(host, why);
        }
        Err(error) => error,
    };
    let ProcessError::Failed { status, stderr, .. } = &error else {
        child.kill();
        let why = match why {
            NoLine::TimeOver => format!(
                "the login worked, but then nothing came for {} s; does a login script ask \
                 something?",
                ENTRY.as_secs()
            ),
            _ => "the login worked, but then nothing came that was asked for; does a login \
                  script write without end?"
                .to_owned(),
        };
        return HostsError::on(host, why);
    };
    let said = last_words(stderr);
    let why = match status.code() {
        Some(script::NO_DIRECTORY) => format!(
            "no temporary directory could be made: {said}; choose a place with --host-directory"
        ),
        Some(script::NOT_WRITTEN) => format!(
            "the program ({} MB) could not be written: {said}; make room, or choose another \
             place with --host-directory",
            program.size >> 20
        ),
        Some(script::CUT_OFF) => format!("the program arrived only in part: {said}"),
        Some(script::NOT_RUN) => format!(
            "the program was copied and does not run: {said}{}; where the place is mounted \
             noexec, choose another with --host-directory",
            program.hint()
        ),
        _ => return ended_session(host, stage, error),
    };
    HostsError::on(host, why)
}

/// What the end of an ssh process means.
fn session_error(host: &str) -> impl Fn(ProcessError) -> TargetError + Send + 'static {
    let host = host.to_owned();
    // The harness says what the agent was in the middle of.
    move |error| ended_session(&host, "", error).into()
}

fn ended_session(host: &str, stage: &'static str, error: ProcessError) -> HostsError {
    let of_ssh = |why| HostsError::Ssh {
        host: host.to_owned(),
        stage,
        why,
    };
    match error {
        ProcessError::Failed { status, stderr, .. } if status.code() == Some(SSH_ITSELF) => {
            of_ssh(explain(&stderr))
        }
        ProcessError::Failed { status, .. } if status.code().is_none() => of_ssh(format!(
            "its process on this machine ended with {status}; who ended it?"
        )),
        ProcessError::Failed { status, stderr, .. } => {
            let said = last_words(&stderr);
            HostsError::on(host, format!("the session ended with {status}: {said}"))
        }
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use plumbline_sys::process::Command;

    use super::*;

    static NEVER: AtomicBool = AtomicBool::new(false);

    fn said_by(script: &str) -> (Child, BufReader<ChildStdout>) {
        let command = Command::new(Path::new("sh")).args(["-c", script]);
        let mut child = command.spawn().unwrap();
        let output = child.take_stdout().unwrap();
        (child, BufReader::new(output))
    }

    #[test]
    fn a_line_among_those_of_others_is_found() {
        let (_child, output) = said_by("echo hello; head -c 9000 /dev/zero; echo; echo there");
        let (found, _) = line(output, ENTRY, &NEVER, |text| {
            (text == "there\n").then_some(7)
        })
        .unwrap();
        assert_eq!(found, 7);
    }

    #[test]
    fn output_without_a_newline_is_given_up_and_closed() {
        let (mut child, output) = said_by("exec cat /dev/zero");
        let found = line(output, ENTRY, &NEVER, |_| None::<()>);
        assert_eq!(found.err(), Some(NoLine::Ended));
        // Nothing reads it any more, so it cannot go on.
        assert!(matches!(
            child.wait(ENTRY),
            Err(ProcessError::Failed { .. })
        ));
    }

    #[test]
    fn a_user_who_wants_to_stop_does_not_wait_for_a_line() {
        static WANTED: AtomicBool = AtomicBool::new(true);
        let (_child, output) = said_by("exec sleep 1000");
        let found = line(output, ENTRY, &WANTED, |_| None::<()>);
        assert_eq!(found.err(), Some(NoLine::Interrupted));
    }
}

//! The system's ssh: how it is started, and what its words mean.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plumbline_sys::process::Command;

use crate::error::HostsError;

/// Exit code of ssh for errors of its own (ssh(1)).
pub(crate) const SSH_ITSELF: i32 = 255;

/// How ssh is started for one host.
#[derive(Clone, Debug)]
pub(crate) struct Ssh {
    pub(crate) host: String,
    pub(crate) config: Option<PathBuf>,
    /// Shared by all who may start a session.
    pub(crate) socket: Arc<ControlSocket>,
}

/// The socket by which later sessions share the first one's connection. ssh
/// makes it, for its user alone, and removes it when it ends; where it was
/// killed, dropping this does.
#[derive(Debug)]
pub(crate) struct ControlSocket(PathBuf);

impl ControlSocket {
    /// A random name, so that no other user can have taken it before: all may
    /// write where temporary files go.
    pub(crate) fn new() -> Result<Arc<Self>, HostsError> {
        let mut random = [0; 8];
        File::open("/dev/urandom")
            .and_then(|mut source| source.read_exact(&mut random))
            .map_err(HostsError::Random)?;
        let name = format!("plumbline-{:016x}", u64::from_ne_bytes(random));
        Ok(Arc::new(Self(std::env::temp_dir().join(name))))
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        // Usually ssh has removed it already.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// What a session is to the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SshSession {
    /// Makes it, and ends it when it ends.
    First,
    /// Uses it.
    Later,
}

impl Ssh {
    /// Prepares `command` on the host.
    pub(crate) fn command(&self, session: SshSession, command: &str) -> Command {
        Command::new(Path::new("ssh")).args(self.arguments(session, command))
    }

    /// What the user's configuration says holds, except for what would break a
    /// session that no person looks at: questions, terminals, forwardings,
    /// commands of the configuration's own.
    fn arguments(&self, session: SshSession, command: &str) -> Vec<String> {
        let mut arguments: Vec<String> = Vec::new();
        if let Some(config) = &self.config {
            arguments.extend(["-F".into(), config.display().to_string()]);
        }
        let master = match session {
            SshSession::First => "ControlMaster=yes",
            SshSession::Later => "ControlMaster=no",
        };
        // A connection that carries nothing for 5 s is cut (S-5e).
        let options = [
            "BatchMode=yes",
            "ConnectTimeout=10",
            "ServerAliveInterval=1",
            "ServerAliveCountMax=5",
            "ClearAllForwardings=yes",
            "ForwardAgent=no",
            "ForwardX11=no",
            "PermitLocalCommand=no",
            "RemoteCommand=none",
            "RequestTTY=no",
            "ControlPersist=no",
            master,
        ];
        for option in options {
            arguments.extend(["-o".into(), option.into()]);
        }
        let socket = format!("ControlPath={}", self.socket.0.display());
        arguments.extend(["-o".into(), socket, "--".into()]);
        arguments.extend([self.host.clone(), command.to_owned()]);
        arguments
    }
}

/// What ssh said when it failed, with the remedy.
pub(crate) fn explain(said: &str) -> String {
    let said = last_words(said);
    let remedies = [
        (
            "REMOTE HOST IDENTIFICATION HAS CHANGED",
            "its key is not the one that is known: find out why before you remove the old one with ssh-keygen -R",
        ),
        (
            "Host key verification failed",
            "its key is not known here, and ssh may not ask you: connect once by hand and compare the key",
        ),
        (
            "Permission denied",
            "none of your keys is accepted, and passwords are not asked for: try `ssh -o BatchMode=yes` by hand, and add the key to your agent or to the host's authorized_keys",
        ),
        (
            "Could not resolve hostname",
            "the name is unknown: is it spelt right, and is there an entry in your ssh configuration?",
        ),
        (
            "Connection refused",
            "no ssh server listens there: is it running, and is the port right?",
        ),
        (
            "timed out",
            "no answer: is it up, and does a firewall or a jump host stand in between?",
        ),
        ("No route to host", "there is no route to it: is it up?"),
        ("Network is unreachable", "this machine has no route to it"),
        (
            "too long for Unix domain socket",
            "set TMPDIR to a shorter path",
        ),
    ];
    let remedy = remedies
        .iter()
        .find(|(sign, _)| said.contains(sign))
        .map(|(_, remedy)| *remedy);
    match (said.is_empty(), remedy) {
        (true, _) => "the connection ended without a message; try ssh by hand".to_owned(),
        (_, Some(remedy)) => format!("{said}; {remedy}"),
        (_, None) => format!("{said}; try ssh by hand"),
    }
}

/// The lines that say something, without the frames of ssh's warnings.
pub(crate) fn last_words(said: &str) -> String {
    let lines = said
        .lines()
        .map(|line| line.trim().trim_matches('@').trim());
    let kept: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    // A banner may come first; what went wrong comes last.
    let from = kept.len().saturating_sub(3);
    let important = kept[..from]
        .iter()
        .find(|line| line.contains("HAS CHANGED"));
    important
        .into_iter()
        .chain(&kept[from..])
        .copied()
        .collect::<Vec<_>>()
        .join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_never_an_option() {
        let ssh = Ssh {
            host: "me@a".into(),
            config: Some("/c".into()),
            socket: Arc::new(ControlSocket("/s/a".into())),
        };
        let arguments = ssh.arguments(SshSession::Later, "exec true");
        assert_eq!(arguments[..2], ["-F", "/c"]);
        assert!(arguments.contains(&"BatchMode=yes".to_owned()));
        assert!(arguments.contains(&"ControlPath=/s/a".to_owned()));
        let end = arguments.len() - 3;
        assert_eq!(arguments[end..], ["--", "me@a", "exec true"]);
    }

    #[test]
    fn what_ssh_says_gets_a_remedy() {
        let key = explain("me@a: Permission denied (publickey).\r\n");
        assert!(key.starts_with("me@a: Permission denied"), "{key}");
        assert!(key.contains("authorized_keys"), "{key}");
        let changed = "@@@@@@\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!  @\n@@@@@@\na\nb\nc\nHost key verification failed.";
        assert!(explain(changed).contains("ssh-keygen -R"), "{changed}");
        assert!(explain("").contains("by hand"));
    }
}

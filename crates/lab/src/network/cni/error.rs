//! What can go wrong between a configuration list and an attached pod.

use std::path::PathBuf;
use std::time::Duration;

use plumbline_sys::process::ProcessError;

use crate::error::LabError;

/// Why a CNI configuration list or one of its plugins cannot be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum CniError {
    /// The file of the list.
    #[error("cannot read the CNI configuration list `{}`: {source}", file.display())]
    Read {
        file: PathBuf,
        source: std::io::Error,
    },
    /// What the file says.
    #[error("the CNI configuration list `{}` {problem}", file.display())]
    List { file: PathBuf, problem: String },
    /// The program of a plugin.
    #[error("cannot read the CNI plugin `{}`: {source}; make it readable", file.display())]
    Program {
        file: PathBuf,
        source: std::io::Error,
    },
    /// A directory for what plugins store.
    #[error("cannot make a directory in memory for CNI plugins: {source}; it needs Linux 5.2")]
    Scratch { source: std::io::Error },
    /// A plugin does not speak the version of the list.
    #[error(
        "the CNI plugin `{plugin}` speaks {speaks}, not {wanted}, which the list asks for; \
         change its `cniVersion`, or use another release of the plugin"
    )]
    Version {
        plugin: String,
        speaks: String,
        wanted: String,
    },
    /// A plugin could not be run.
    #[error("at {call}: {source}")]
    Process { call: Call, source: ProcessError },
    /// A plugin did not come to an end.
    #[error(
        "at {call}: no answer within {} s, so it was killed; does it wait for a daemon?",
        limit.as_secs()
    )]
    Hangs { call: Call, limit: Duration },
    /// A plugin refused in the words that CNI has for it.
    #[error("at {call}: {message} (CNI error {code})")]
    Refused {
        call: Call,
        message: String,
        code: u64,
    },
    /// A plugin failed without saying why.
    #[error("at {call}: it failed without a CNI error: {source}")]
    Failed { call: Call, source: ProcessError },
    /// A plugin's answer is not what CNI calls a result.
    #[error("at {call}: {problem}; it answered `{answer}`")]
    Answer {
        call: Call,
        problem: String,
        answer: String,
    },
    /// The pod got no address.
    #[error(
        "`{list}` gave {pod} no IPv{version} address; add an `ipam` section that does, or use the other IP version"
    )]
    NoAddress {
        list: String,
        pod: String,
        version: u8,
    },
    /// A failure, and then others while what had been done was undone.
    #[error("{first}; taking it back failed too: {}", joined(then))]
    NotUndone {
        first: Box<CniError>,
        then: Vec<CniError>,
    },
}

impl From<CniError> for LabError {
    fn from(error: CniError) -> Self {
        Self::network(error)
    }
}

/// One call of a plugin, to say where something went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The plugin's type.
    pub plugin: String,
    /// `ADD`, `CHECK`, `DEL` or `VERSION`.
    pub command: &'static str,
    /// What it is for: a pod, or nothing.
    pub pod: Option<String>,
}

impl std::fmt::Display for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of the CNI plugin `{}`", self.command, self.plugin)?;
        match &self.pod {
            Some(pod) => write!(f, " for {pod}"),
            None => Ok(()),
        }
    }
}

fn joined(errors: &[CniError]) -> String {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

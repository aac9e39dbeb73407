//! Running a plugin (containernetworking/cni, SPEC.md, sections 2 and 5).

use std::io::Write;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plumbline_experiment::Family;
use plumbline_record::{CniPlugin, why_unreadable};
use plumbline_sys::process::{Collected, Command, ProcessError};
use serde::Deserialize;
use serde_json::Value;

use super::error::{Call, CniError};

/// Longest that a plugin may take. Real runtimes wait for minutes; a plugin
/// that needs so long here waits for something that a lab does not have.
const LIMIT: Duration = Duration::from_secs(10);
/// Much more than any result; a plugin cannot fill the memory.
const MOST_BYTES: usize = 1 << 20;
/// How much of an answer is quoted.
const QUOTED: usize = 200;

/// A plugin that was found.
#[derive(Clone, Debug)]
pub(super) struct Executable {
    pub(super) kind: String,
    path: PathBuf,
    /// Where it looks for the plugins that it runs itself.
    directories: Vec<PathBuf>,
}

/// A pod, as it is described to plugins.
#[derive(Clone, Debug)]
pub(super) struct Container {
    /// `pod1`.
    pub(super) pod: String,
    /// A path that leads to its network namespace.
    pub(super) namespace: String,
    /// Its device.
    pub(super) device: &'static str,
}

/// The error object of the specification.
#[derive(Deserialize)]
struct ErrorObject {
    code: u64,
    msg: String,
    #[serde(default)]
    details: String,
}

#[derive(Deserialize)]
struct Versions {
    #[serde(rename = "supportedVersions")]
    supported: Vec<String>,
}

impl Executable {
    /// Looks for a plugin in directories, in their order.
    pub(super) fn find(kind: &str, directories: &[PathBuf]) -> Option<Self> {
        // A type is a file's name, never a path (SPEC.md, section 1).
        if kind.is_empty() || kind.contains('/') {
            return None;
        }
        let paths = directories.iter().map(|directory| directory.join(kind));
        let path = paths.into_iter().find(|path| path.is_file())?;
        Some(Self {
            kind: kind.into(),
            path,
            directories: directories.to_vec(),
        })
    }

    /// Which program it is.
    pub(super) fn identify(&self, node: &impl AsFd) -> Result<CniPlugin, CniError> {
        let program = std::fs::File::open(&self.path);
        let sha256 = program.and_then(plumbline_build::sha256);
        Ok(CniPlugin {
            kind: self.kind.clone(),
            version: self.version(node),
            sha256: sha256.map_err(|source| CniError::Program {
                file: self.path.clone(),
                source,
            })?,
        })
    }

    /// The version that the program was built as. Plugins made with CNI's library print
    /// it on standard error when they get no command.
    fn version(&self, node: &impl AsFd) -> Option<String> {
        let command = Command::new(&self.path).env("CNI_COMMAND", "");
        let mut child = command.spawn_in(node).ok()?;
        drop((child.take_stdin(), child.take_stdout()));
        let ended = child.wait(LIMIT);
        // What it started and left behind would keep the stream open.
        child.kill_group();
        ended.ok()?;
        built_as(&child.take_stderr()).map(str::to_owned)
    }

    /// The versions that the plugin says it speaks.
    pub(super) fn versions(&self, node: &impl AsFd) -> Result<Vec<String>, CniError> {
        let call = self.call("VERSION", None);
        let request = serde_json::json!({ "cniVersion": "1.0.0" });
        let answer = self.run(&call, node, None, &request)?;
        supported(&call, &answer)
    }

    /// Attaches; gives the result.
    pub(super) fn add(
        &self,
        node: &impl AsFd,
        container: &Container,
        request: &Value,
    ) -> Result<Value, CniError> {
        let call = self.call("ADD", Some(container));
        let answer = self.run(&call, node, Some(container), request)?;
        result(&call, &answer, request)
    }

    /// Asks whether all is as it was made, or detaches; there is no answer.
    pub(super) fn tell(
        &self,
        command: &'static str,
        node: &impl AsFd,
        container: &Container,
        request: &Value,
    ) -> Result<(), CniError> {
        let call = self.call(command, Some(container));
        let told = self.run(&call, node, Some(container), request);
        told.map(|_| ())
    }

    fn call(&self, command: &'static str, container: Option<&Container>) -> Call {
        Call {
            plugin: self.kind.clone(),
            command,
            pod: container.map(|container| container.pod.clone()),
        }
    }

    /// Runs the plugin in the network namespace of a node; gives its standard
    /// output.
    fn run(
        &self,
        call: &Call,
        node: &impl AsFd,
        container: Option<&Container>,
        request: &Value,
    ) -> Result<Vec<u8>, CniError> {
        let path = std::env::join_paths(&self.directories).unwrap_or_default();
        let mut command = Command::new(&self.path)
            .env("CNI_COMMAND", call.command)
            .env("CNI_PATH", path);
        if let Some(container) = container {
            command = command
                .env("CNI_CONTAINERID", format!("plumbline-{}", container.pod))
                .env("CNI_NETNS", &container.namespace)
                .env("CNI_IFNAME", container.device);
        }
        let failed = |source| CniError::Process {
            call: call.clone(),
            source,
        };
        let mut child = command.spawn_in(node).map_err(failed)?;
        let (Some(mut input), Some(output)) = (child.take_stdin(), child.take_stdout()) else {
            unreachable!("a command pipes both streams");
        };
        let request = request.to_string();
        // A plugin may end without reading its input; whether that was an error
        // shows in how it ended. Nobody waits for the thread: what a plugin leaves
        // behind, in a process group of its own, may hold the stream.
        std::thread::spawn(move || drop(input.write_all(request.as_bytes())));
        let answer = Collected::first(output, MOST_BYTES);
        let ended = child.wait(LIMIT);
        // What it started and left behind would keep the streams open.
        child.kill_group();
        let answer = answer.take();
        match ended {
            Ok(()) => Ok(answer),
            Err(ProcessError::StillRunning { limit, .. }) => Err(CniError::Hangs {
                call: call.clone(),
                limit,
            }),
            Err(source @ ProcessError::Failed { .. }) => Err(refusal(call, &answer, source)),
            Err(source) => Err(failed(source)),
        }
    }
}

/// The version in `CNI bridge plugin v1.1.1`.
pub(super) fn built_as(said: &str) -> Option<&str> {
    let about = said.lines().find_map(|line| line.strip_prefix("CNI "))?;
    let (_, version) = about.split_once(" plugin ")?;
    (version != "version unknown").then_some(version)
}

/// What a plugin that failed said, in CNI's words or in none.
pub(super) fn refusal(call: &Call, answer: &[u8], source: ProcessError) -> CniError {
    let call = call.clone();
    match serde_json::from_slice::<ErrorObject>(answer) {
        Ok(ErrorObject { code, msg, details }) => {
            let message = if details.is_empty() {
                msg
            } else {
                format!("{msg}: {details}")
            };
            CniError::Refused {
                call,
                message,
                code,
            }
        }
        Err(_) => CniError::Failed { call, source },
    }
}

/// The versions in the answer to VERSION.
pub(super) fn supported(call: &Call, answer: &[u8]) -> Result<Vec<String>, CniError> {
    let versions: Versions = read(call, answer)?;
    Ok(versions.supported)
}

/// The result in the answer to a request.
pub(super) fn result(call: &Call, answer: &[u8], request: &Value) -> Result<Value, CniError> {
    let result: Value = read(call, answer)?;
    let asked = &request["cniVersion"];
    if result["cniVersion"] == *asked {
        return Ok(result);
    }
    // It may be anything, of any length.
    let is = result["cniVersion"].to_string();
    let problem = format!("a result of version {is:.40} was given where {asked} was asked for");
    Err(wrong(call, problem, answer))
}

/// The first address of a family in a result.
pub(super) fn address_in(result: &Value, family: Family) -> Option<IpAddr> {
    let mut addresses = result["ips"].as_array()?.iter().filter_map(|ip| {
        let (address, _) = ip["address"].as_str()?.split_once('/')?;
        address.parse::<IpAddr>().ok()
    });
    addresses.find(|it| family.holds(*it))
}

fn read<T: for<'de> Deserialize<'de>>(call: &Call, answer: &[u8]) -> Result<T, CniError> {
    serde_json::from_slice(answer).map_err(|error| {
        let problem = format!("the answer is not understood: {}", why_unreadable(&error));
        wrong(call, problem, answer)
    })
}

fn wrong(call: &Call, problem: String, answer: &[u8]) -> CniError {
    let text = String::from_utf8_lossy(&answer[..answer.len().min(QUOTED)]);
    CniError::Answer {
        call: call.clone(),
        problem,
        answer: text.into_owned(),
    }
}

/// Where plugins are looked for by default: the directories of
/// `CNI_PATH`, else where Debian and where upstream puts them.
pub fn default_directories() -> Vec<PathBuf> {
    match std::env::var_os("CNI_PATH") {
        Some(path) if !path.is_empty() => std::env::split_paths(&path).collect(),
        _ => ["/usr/lib/cni", "/opt/cni/bin"]
            .map(Path::new)
            .map(Into::into)
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_answer_that_is_none_the_beginning_is_quoted() {
        let call = Call {
            plugin: "ptp".to_owned(),
            command: "ADD",
            pod: None,
        };
        let answer = format!("\"{}\"", "ä".repeat(5_000));
        let error = supported(&call, answer.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("invalid type: string"), "{error}");
        assert!(error.chars().count() < 600, "{error}");
    }

    #[test]
    fn a_version_is_taken_from_what_plugins_say_of_themselves() {
        let said = |about: &str| format!("{about}\nCNI protocol versions supported: 0.4.0\n");
        assert_eq!(built_as(&said("CNI ptp plugin v1.4.1")), Some("v1.4.1"));
        assert_eq!(built_as(&said("CNI ptp plugin version unknown")), None);
        assert_eq!(built_as("CNI_COMMAND env variable missing"), None);
    }
}

//! Running the commands that bring clusters up and take them down.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use plumbline_sys::temporary;
use tempfile::TempDir;

/// How often a command is checked.
const LOOK: Duration = Duration::from_millis(50);

/// How long a command that must stop may tidy up before it is killed.
const TIDY: Duration = Duration::from_secs(30);

/// What a command gets, apart from the level in its text.
pub(crate) struct Told<'a> {
    /// The level: `{network}` in the command, `PLUMBLINE_NETWORK` for it.
    pub(crate) network: &'a str,
    /// The file that says, or is to say, how to reach the cluster.
    pub(crate) kubeconfig: &'a Path,
    /// The archive of the image that the nodes have to get, if there is one.
    pub(crate) image: Option<&'a Path>,
    /// Where its standard error goes; its standard output goes beside it.
    pub(crate) log: &'a Path,
    pub(crate) limit: Duration,
}

/// Runs a command of the user's by the shell, in a process group of its own: a
/// Ctrl-C is for us, and what is to be stopped is stopped whole. Gives what it
/// wrote to standard output.
///
/// # Errors
///
/// A sentence: it could not be started, took too long, was stopped because
/// `interrupted` was set, or ended badly, then with the end of its log.
pub(crate) fn run(
    command: &str,
    told: &Told<'_>,
    interrupted: Option<&AtomicBool>,
) -> Result<String, String> {
    let text = command.replace("{network}", told.network);
    let output = told.log.with_extension("out");
    let started = start(&text, told, &output);
    let mut child = started.map_err(|error| format!("`{text}` cannot be started: {error}"))?;
    let status = wait(&mut child, told.limit, interrupted);
    // Not all of it need be text; the lines that mean something are.
    let said = String::from_utf8_lossy(&fs::read(&output).unwrap_or_default()).into_owned();
    if said.is_empty() {
        // An empty file says nothing.
        let _ = fs::remove_file(&output);
    }
    let tail = || match tail(told.log) {
        lines if lines.is_empty() => "it said nothing".to_owned(),
        lines => format!("its last lines:\n{lines}"),
    };
    match status {
        Ok(Some(status)) if status.success() => Ok(said),
        Ok(Some(status)) => Err(format!("`{text}` ended with {status}; {}", tail())),
        Ok(None) if interrupted.is_some_and(|it| it.load(Ordering::SeqCst)) => {
            Err(format!("`{text}` was stopped"))
        }
        Ok(None) => Err(format!(
            "`{text}` took more than {} s and was stopped; {}",
            told.limit.as_secs(),
            tail()
        )),
        Err(error) => Err(format!("`{text}` could not be waited for: {error}")),
    }
}

fn start(text: &str, told: &Told<'_>, output: &Path) -> io::Result<Child> {
    let mut command = Command::new("sh");
    command
        .args(["-c", text])
        .env("KUBECONFIG", told.kubeconfig)
        .env("PLUMBLINE_NETWORK", told.network)
        .stdin(Stdio::null())
        .stdout(File::create(output)?)
        .stderr(File::create(told.log)?)
        .process_group(0);
    if let Some(image) = told.image {
        command.env("PLUMBLINE_IMAGE", image);
    }
    command.spawn()
}

/// `None` when it was stopped.
fn wait(
    child: &mut Child,
    limit: Duration,
    interrupted: Option<&AtomicBool>,
) -> io::Result<Option<ExitStatus>> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let wanted = interrupted.is_some_and(|it| it.load(Ordering::SeqCst));
        if wanted || started.elapsed() > limit {
            stop(child)?;
            return Ok(None);
        }
        std::thread::sleep(LOOK);
    }
}

/// Asks the whole group to end, and ends what did not.
fn stop(child: &mut Child) -> io::Result<()> {
    // A process id fits.
    let group = Pid::from_raw(child.id() as i32);
    // What is gone already needs no signal.
    let _ = killpg(group, Signal::SIGTERM);
    let started = Instant::now();
    while child.try_wait()?.is_none() {
        if started.elapsed() > TIDY {
            let _ = killpg(group, Signal::SIGKILL);
            child.wait()?;
            break;
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

fn tail(log: &Path) -> String {
    const LINES: usize = 12;
    let bytes = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().filter(|it| !it.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

/// A directory that only this user can read: configurations of clusters hold keys.
pub(crate) fn private() -> io::Result<TempDir> {
    temporary::directory("clusters", 0o700)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told<'a>(private: &'a TempDir, log: &'a Path, limit: Duration) -> Told<'a> {
        Told {
            network: "calico",
            kubeconfig: private.path(),
            image: None,
            log,
            limit,
        }
    }

    #[test]
    fn a_command_is_told_the_level_and_its_output_is_kept() {
        let private = private().unwrap();
        let log = private.path().join("up.log");
        let limit = Duration::from_secs(20);
        let said = run(
            "echo {network} $PLUMBLINE_NETWORK $KUBECONFIG; echo heard >&2",
            &told(&private, &log, limit),
            None,
        );
        let here = private.path().display();
        assert_eq!(said.unwrap(), format!("calico calico {here}\n"));
        assert_eq!(fs::read_to_string(&log).unwrap(), "heard\n");
    }

    #[test]
    fn a_bad_end_is_told_with_the_last_lines() {
        let private = private().unwrap();
        let log = private.path().join("up.log");
        let limit = Duration::from_secs(20);
        let error = run(
            "echo no disk >&2; exit 3",
            &told(&private, &log, limit),
            None,
        );
        let error = error.unwrap_err();
        assert!(error.contains('3') && error.contains("no disk"), "{error}");
    }

    /// A process that has ended stays until somebody asks for it.
    fn lives(pid: &str) -> bool {
        let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !status.is_empty() && !status.contains(") Z ")
    }

    #[test]
    fn too_long_and_interrupted_commands_are_stopped_with_their_children() {
        let private = private().unwrap();
        let command = "sleep 60 & echo $! >&2; wait";
        let began = Instant::now();
        let [late, stopped] = ["late.log", "stopped.log"].map(|it| private.path().join(it));
        let limit = Duration::from_secs(2);
        let error = run(command, &told(&private, &late, limit), None).unwrap_err();
        assert!(error.contains("took more than 2 s"), "{error}");
        let interrupted = AtomicBool::new(true);
        let limit = Duration::from_secs(60);
        let told = told(&private, &stopped, limit);
        let error = run(command, &told, Some(&interrupted)).unwrap_err();
        assert!(error.ends_with("was stopped"), "{error}");
        assert!(began.elapsed() < Duration::from_secs(30));
        // The second may have been stopped before it could say its child.
        let said = [late, stopped].map(|log| fs::read_to_string(log).unwrap());
        assert_ne!(said[0], "", "the first said its child");
        for child in said.iter().filter_map(|it| it.lines().next()) {
            while lives(child) {
                assert!(began.elapsed() < Duration::from_secs(50), "{child} lives");
                std::thread::sleep(LOOK);
            }
        }
    }

    #[test]
    fn a_private_directory_is_private_and_goes() {
        use std::os::unix::fs::PermissionsExt as _;
        let private = private().unwrap();
        let path = private.path().to_owned();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
        drop(private);
        assert!(!path.exists());
    }
}

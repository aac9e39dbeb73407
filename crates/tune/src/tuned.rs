//! A machine that is tuned while something is done.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use plumbline_sys::awake::Awake;
use plumbline_sys::foreground::Foreground;

use crate::error::{Because as _, TuneError};
use crate::journal::TuneJournal;
use crate::proposal::{Adjustment, Proposal, proposals};
use crate::restored::put_back;
use crate::root::Root;

/// Where messages for people go, one line each.
type Tell<'a> = &'a mut dyn FnMut(&str);

/// Tells a command that the machine is tuned around it.
const AROUND: &str = "PLUMBLINE_TUNED";

/// Runs the command that this process is once more, as [`around`] does; `None` where this
/// process was started by that, itself or through others.
///
/// # Errors
///
/// As [`around`].
pub fn around_this(root: &Root, tell: Tell<'_>) -> Result<Option<u8>, TuneError> {
    if std::env::var_os(AROUND).is_some() {
        return Ok(None);
    }
    let program = std::env::current_exe();
    let program = program.because("find", "the program of this process")?;
    let mut typed = std::env::args_os();
    let mut command = Command::new(program);
    if let Some(name) = typed.next() {
        command.arg0(name);
    }
    command.args(typed);
    around(root, command, tell).map(Some)
}

/// Runs a command while the machine is tuned, with this process's terminal and signals.
/// Gives its exit code, and as a shell does 128 and the number of the signal that ended it.
/// To be called before the process has another thread.
///
/// # Errors
///
/// Whatever keeps the machine from being tuned, or from being put back.
pub fn around(root: &Root, mut command: Command, tell: Tell<'_>) -> Result<u8, TuneError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |source| TuneError::Command {
        program: program.clone(),
        source,
    };
    check_user(root)?;
    // From here on no signal that can be held ends this process.
    let foreground = Foreground::enter().map_err(failed)?;
    command.env(AROUND, "1");
    let ended = while_tuned(root, tell, || foreground.run(command))?;
    ended.map_err(failed)
}

/// Does something while the machine is tuned. What a killed process has left is put back
/// first: else it would be taken for what the machine was.
///
/// # Errors
///
/// Whatever keeps the machine from being tuned, or from being put back.
pub fn while_tuned<T>(
    root: &Root,
    tell: Tell<'_>,
    work: impl FnOnce() -> T,
) -> Result<T, TuneError> {
    check_user(root)?;
    let journal = TuneJournal::take(root)?;
    put_left_back(root, &journal, tell)?;
    let proposals = proposals(root);
    let (held, kept): (Vec<Proposal>, Vec<Proposal>) =
        proposals.into_iter().partition(|it| it.held);
    let adjustments: Vec<Adjustment> = kept.into_iter().flat_map(|it| it.adjustments).collect();
    let awake = hold(&held, tell);
    let done = if adjustments.is_empty() {
        if awake.is_none() {
            tell("tuned: there is nothing to set on this machine");
        }
        Ok(work())
    } else {
        journal.begin(&adjustments)?;
        set(root, &adjustments, tell).map(|()| work())
    };
    put_left_back(root, &journal, tell)?;
    drop(awake);
    done
}

/// Puts back what a killed process has left.
///
/// # Errors
///
/// Another process has the machine, the journal is none, or the kernel does not take a
/// value; then the journal stays.
pub fn restore(root: &Root, tell: Tell<'_>) -> Result<(), TuneError> {
    check_user(root)?;
    let journal = TuneJournal::take(root)?;
    if journal.left()?.is_empty() {
        tell("nothing is left of a killed `plumbline tune`");
    }
    put_left_back(root, &journal, tell)
}

fn check_user(root: &Root) -> Result<(), TuneError> {
    if root.is_this_machine() && !nix::unistd::geteuid().is_root() {
        return Err(TuneError::NotRoot);
    }
    Ok(())
}

/// Puts back what is in the journal, and ends that.
fn put_left_back(root: &Root, journal: &TuneJournal<'_>, tell: Tell<'_>) -> Result<(), TuneError> {
    let left = journal.left()?;
    let restored = put_back(root, &left);
    for sentence in &restored.changed {
        tell(sentence);
    }
    if !restored.failed.is_empty() {
        return Err(TuneError::Stuck {
            failed: restored.failed,
        });
    }
    if !left.is_empty() {
        tell(&format!(
            "put back: {} of {} files",
            restored.back,
            left.len()
        ));
    }
    journal.end()
}

/// What ends with this process by itself.
fn hold(proposals: &[Proposal], tell: Tell<'_>) -> Option<Awake> {
    let wanted = proposals.iter().find(|it| !it.adjustments.is_empty())?;
    match Awake::demand() {
        Ok(awake) => {
            tell(&format!("tuned: {}", wanted.name));
            Some(awake)
        }
        Err(error) => {
            tell(&format!("not set: {}: {error}", wanted.name));
            None
        }
    }
}

/// Sets what is in the journal. What the kernel refuses, or makes something else of, stays
/// as it was.
fn set(root: &Root, adjustments: &[Adjustment], tell: Tell<'_>) -> Result<(), TuneError> {
    let mut names: Vec<&str> = Vec::new();
    let mut refused = Vec::new();
    for one in adjustments {
        match set_one(root, one) {
            Ok(()) if names.contains(&&*one.tunable) => {}
            Ok(()) => names.push(&one.tunable),
            Err(why) => refused.push(format!("{}: {why}", one.file)),
        }
    }
    if names.is_empty() {
        let first = refused.into_iter().next().unwrap_or_default();
        return Err(TuneError::Refused { first });
    }
    for sentence in &refused {
        tell(&format!("not set: {sentence}"));
    }
    let files = adjustments.len() - refused.len();
    tell(&format!("tuned: {} ({files} files)", names.join(", ")));
    Ok(())
}

fn set_one(root: &Root, one: &Adjustment) -> Result<(), String> {
    let Adjustment {
        file, before, set, ..
    } = one;
    let read = || root.read(file).map_err(|error| error.to_string());
    let found = read()?;
    // Two that share a kernel want the same.
    if found == *set {
        return Ok(());
    }
    if found != *before {
        return Err(format!("somebody has just set {found}"));
    }
    root.write(file, set).map_err(|error| error.to_string())?;
    let made = read()?;
    if made == *set {
        return Ok(());
    }
    // What is not in the journal could not be put back later.
    let undone = root.write(file, before).map_err(|error| error.to_string());
    undone.and(Err(format!("the kernel makes {made} of {set}")))
}

//! `plumbline tune`: what makes this machine's figures steadier, for as long as a command runs.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use plumbline_tune::{Root, Shown, TuneArgs, around, restore};

use crate::command::{print, print_json};
use crate::progress;

pub(crate) fn run(args: &TuneArgs) -> anyhow::Result<ExitCode> {
    let root = Root::of_this_machine();
    if args.restore {
        restore(&root, &mut progress::say)?;
    }
    if args.show {
        let shown = Shown::of(&root)?;
        match args.json {
            true => print_json(&shown)?,
            false => print(&shown.text())?,
        }
    }
    let Some((program, arguments)) = args.command.split_first() else {
        return Ok(ExitCode::SUCCESS);
    };
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(around(&root, command, &mut progress::say)?.into())
}

/// Runs this command once more, while the machine is tuned; `None` where it is.
pub(crate) fn around_this() -> anyhow::Result<Option<ExitCode>> {
    if plumbline_tune::is_around() {
        return Ok(None);
    }
    let mut typed = std::env::args_os();
    let mut command = Command::new(std::env::current_exe()?);
    if let Some(name) = typed.next() {
        command.arg0(name);
    }
    command.args(typed);
    let code = around(&Root::of_this_machine(), command, &mut progress::say)?;
    Ok(Some(code.into()))
}

//! `plumbline tune`: what makes this machine's figures steadier, for as long as a command runs.

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
    let code = plumbline_tune::around_this(&Root::of_this_machine(), &mut progress::say)?;
    Ok(code.map(ExitCode::from))
}

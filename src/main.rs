//! Plumbline measures what a container network costs.
//!
//! The command line: glue only. What it glues is in `crates/`.

mod cli;
mod command;
mod progress;
mod target;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use cli::{Cli, CliCommand};
use plumbline_gate::Against;
use plumbline_session::SessionError;

/// Exit codes: 0 done, 1 a limit broken, 2 an error, 64 bad usage or a bad
/// experiment file.
fn main() -> ExitCode {
    let cli = match parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    match run(cli) {
        Ok(code) => code,
        Err(error) => {
            progress::say_error(&error);
            ExitCode::from(if is_usage(&error) { 64 } else { 2 })
        }
    }
}

/// Whether what was typed, or the experiment, is at fault.
fn is_usage(error: &anyhow::Error) -> bool {
    let of_session = error.downcast_ref::<SessionError>();
    error.is::<plumbline_experiment::SpecError>()
        || error.is::<command::BadUsage>()
        || error.is::<plumbline_gate::GateError>()
        || of_session.is_some_and(SessionError::is_usage)
        || command::linux::is_usage(error)
}

/// Help names the command as it was typed.
fn parse() -> Result<Cli, clap::Error> {
    let matches = Cli::command().bin_name(cli::typed()).try_get_matches()?;
    Cli::from_arg_matches(&matches)
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command {
        CliCommand::Run(args) => command::run::run(&args, Against::Nothing),
        CliCommand::Survive(args) => {
            let limit = args.limit.map_or(Against::Nothing, Against::Gap);
            command::run::run(&args.run, limit)
        }
        CliCommand::Gate(args) => command::run::run(&args.run, Against::Base(&args.gate)),
        CliCommand::Compare(args) => command::compare::run(&args),
        CliCommand::Report(args) => command::report::run(&args),
        CliCommand::List(args) => command::list::run(&args),
        CliCommand::Linux(command) => command::linux::run(command),
        #[cfg(feature = "kubernetes")]
        CliCommand::Image(args) => command::cluster::image(&args),
        #[cfg(feature = "kubernetes")]
        CliCommand::Cleanup(args) => command::cluster::cleanup(&args),
        #[cfg(feature = "kubernetes")]
        CliCommand::Manifest(args) => command::cluster::manifest(&args),
        #[cfg(not(feature = "kubernetes"))]
        CliCommand::Image(_) | CliCommand::Cleanup(_) | CliCommand::Manifest(_) => {
            Err(command::no_clusters())
        }
        CliCommand::Completions { shell } => command::generate::completions(shell),
        CliCommand::Man { dir } => command::generate::man(dir.as_deref()),
    }
}

/// Help and version are no errors; everything else of clap's is bad usage.
fn usage(error: &clap::Error) -> ExitCode {
    // A closed standard error takes no message.
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { 64 } else { 0 })
}

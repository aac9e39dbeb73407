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
use plumbline_engine::EngineError;
use plumbline_generator::{DestinationError, GeneratorError};
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
            progress::say(&format!("plumbline: {error:#}"));
            ExitCode::from(if is_usage(&error) { 64 } else { 2 })
        }
    }
}

/// Whether what was typed, or the experiment, is at fault.
fn is_usage(error: &anyhow::Error) -> bool {
    fn is<E>(error: &anyhow::Error, at_fault: fn(&E) -> bool) -> bool
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        error.downcast_ref().is_some_and(at_fault)
    }
    error.is::<plumbline_experiment::SpecError>()
        || error.is::<command::BadUsage>()
        || is(error, SessionError::is_usage)
        || is(error, EngineError::is_bad_usage)
        || is(error, GeneratorError::is_bad_usage)
        || is(error, DestinationError::is_bad_usage)
}

/// Help names the command as it was typed.
fn parse() -> Result<Cli, clap::Error> {
    let matches = Cli::command().bin_name(cli::typed()).try_get_matches()?;
    Cli::from_arg_matches(&matches)
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command {
        CliCommand::Run(args) => command::run::run(&args),
        CliCommand::Compare(args) => command::compare::run(&args),
        CliCommand::Report(args) => command::report::run(&args),
        CliCommand::List(args) => command::list::run(&args),
        CliCommand::Doctor { json } => command::doctor::run(json),
        CliCommand::Lab(args) => command::lab::run(&args),
        CliCommand::Load(args) => command::load::run(&args),
        CliCommand::Serve(args) => command::serve::run(&args),
        CliCommand::Validate(args) => command::validate::run(&args),
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
        CliCommand::Agent => command::agent::run(),
        CliCommand::Guest(_) => command::guest::run(),
        CliCommand::Hold => Ok(command::agent::hold()),
        CliCommand::Floor(args) => command::floor::run(&args),
    }
}

/// Help and version are no errors; everything else of clap's is bad usage.
fn usage(error: &clap::Error) -> ExitCode {
    // A closed standard error takes no message.
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { 64 } else { 0 })
}

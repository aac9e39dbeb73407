//! What needs Linux: the commands that make load, build networks or look at this machine,
//! and what of the others does.

mod agent;
mod doctor;
mod floor;
mod guest;
mod kernel;
mod lab;
mod load;
mod networks;
mod serve;
mod tune;
mod validate;
mod xray;

use std::process::ExitCode;

use plumbline_engine::EngineError;
use plumbline_generator::{DestinationError, GeneratorError};
use plumbline_xray::XrayError;

use crate::cli::LinuxCommand;
pub(crate) use kernel::{is_elsewhere, run_inside};
pub(crate) use lab::target;
pub(crate) use networks::list;
pub(crate) use tune::around_this;
pub(crate) use xray::{beside, check_beside};

pub(crate) fn run(command: LinuxCommand) -> anyhow::Result<ExitCode> {
    match command {
        LinuxCommand::Doctor(args) => doctor::run(*args),
        LinuxCommand::Tune(args) => tune::run(&args),
        LinuxCommand::Xray(args) => xray::run(&args),
        LinuxCommand::Lab(args) => lab::run(&args),
        LinuxCommand::Load(args) => load::run(&args),
        LinuxCommand::Serve(args) => serve::run(&args),
        LinuxCommand::Validate(args) => validate::run(&args),
        LinuxCommand::Agent => agent::run(),
        LinuxCommand::Guest(_) => guest::run(),
        LinuxCommand::Hold => Ok(agent::hold()),
        LinuxCommand::Floor(args) => floor::run(&args),
    }
}

/// Whether what was typed is at fault.
pub(crate) fn is_usage(error: &anyhow::Error) -> bool {
    fn is<E>(error: &anyhow::Error, at_fault: fn(&E) -> bool) -> bool
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        error.downcast_ref().is_some_and(at_fault)
    }
    is(error, XrayError::is_usage)
        || is(error, EngineError::is_bad_usage)
        || is(error, GeneratorError::is_bad_usage)
        || is(error, DestinationError::is_bad_usage)
}

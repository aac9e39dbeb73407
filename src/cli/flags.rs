//! The flags that stand for keys of the experiment, one for each row of their table.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use plumbline_experiment::Flag;

/// What was typed for each, in the order in which it has to be applied; lists with
/// commas.
#[derive(Debug, Default)]
pub(crate) struct FlagArgs(pub(crate) Vec<(&'static str, String)>);

impl FlagArgs {
    /// Whether the flag of this name was given.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(given, _)| *given == name)
    }
}

impl FromArgMatches for FlagArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let typed = |flag: Flag| {
            let values: Vec<&String> = matches.get_many(flag.name)?.collect();
            let values: Vec<&str> = values.into_iter().map(String::as_str).collect();
            Some((flag.name, values.join(",")))
        };
        Ok(Self(Flag::all().filter_map(typed).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for FlagArgs {
    fn augment_args(command: Command) -> Command {
        Flag::all().fold(command, |command, flag| command.arg(argument(flag)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// A run that was cut off goes on as it was planned.
fn argument(flag: Flag) -> Arg {
    Arg::new(flag.name)
        .long(flag.name)
        .help(flag.help)
        .value_name(flag.value_name)
        .action(ArgAction::Append)
        .conflicts_with("resume")
}

//! The flags that stand for keys of the experiment, one for each row of their table.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use plumbline_experiment::Flag;

/// What was typed for each, in the order in which it has to be applied; lists with
/// commas. Those of an experiment, or else of a single scene.
#[derive(Debug, Default)]
pub(crate) struct FlagArgs<const EXPERIMENT: bool>(pub(crate) Vec<(&'static str, String)>);

impl<const EXPERIMENT: bool> FlagArgs<EXPERIMENT> {
    /// What was given for the flag of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut given = self.0.iter();
        let found = given.find(|(given, _)| *given == name);
        found.map(|(_, value)| value.as_str())
    }

    fn all() -> Vec<Flag> {
        match EXPERIMENT {
            true => Flag::all().collect(),
            false => Flag::of_scene().collect(),
        }
    }
}

impl<const EXPERIMENT: bool> FromArgMatches for FlagArgs<EXPERIMENT> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let typed = |flag: Flag| {
            let values: Vec<&String> = matches.get_many(flag.name)?.collect();
            let values: Vec<&str> = values.into_iter().map(String::as_str).collect();
            Some((flag.name, values.join(",")))
        };
        Ok(Self(Self::all().into_iter().filter_map(typed).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<const EXPERIMENT: bool> Args for FlagArgs<EXPERIMENT> {
    fn augment_args(command: Command) -> Command {
        let command = command.next_help_heading(EXPERIMENT.then_some("The experiment and its run"));
        let arguments = Self::all().into_iter().map(argument);
        // A run that was cut off goes on as it was planned.
        command.args(arguments.map(|it| it.conflicts_with_all(EXPERIMENT.then_some("resume"))))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn argument(flag: Flag) -> Arg {
    Arg::new(flag.name)
        .long(flag.name)
        .help(flag.help)
        .value_name(flag.value_name)
        .action(ArgAction::Append)
}

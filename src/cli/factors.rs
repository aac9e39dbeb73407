//! The flags of the factors of a scene, one for each row of their table.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use plumbline_experiment::{FACTORS, Factor};

/// What was typed for each factor, in the order of the table.
#[derive(Debug, Default)]
pub(crate) struct FactorArgs(Vec<(usize, String)>);

impl FactorArgs {
    /// Each factor that was given, with its levels as they are written in a list.
    pub(crate) fn given(&self) -> impl Iterator<Item = (&'static Factor, &str)> {
        let given = self.0.iter();
        given.map(|(row, levels)| (&FACTORS[*row], levels.as_str()))
    }
}

impl FromArgMatches for FactorArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let levels = |(row, factor): (usize, &Factor)| {
            let levels: Vec<&String> = matches.get_many(factor.name)?.collect();
            let levels: Vec<&str> = levels.into_iter().map(String::as_str).collect();
            Some((row, levels.join(",")))
        };
        Ok(Self(keys().filter_map(levels).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for FactorArgs {
    fn augment_args(command: Command) -> Command {
        keys().fold(command, |command, (_, factor)| command.arg(flag(factor)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn keys() -> impl Iterator<Item = (usize, &'static Factor)> {
    let rows = FACTORS.iter().enumerate();
    rows.filter(|(_, factor)| factor.is_key())
}

/// A run that was cut off goes on with the scenes that it was planned with.
fn flag(factor: &Factor) -> Arg {
    Arg::new(factor.name)
        .long(factor.name)
        .help(factor.help)
        .value_name(factor.value_name)
        .value_delimiter(',')
        .action(ArgAction::Append)
        .conflicts_with("resume")
}

//! How the clusters that an experiment compares come and go: `[target.kubernetes]`.

use std::time::Duration;

use crate::SpecError;
use crate::keys;
use crate::section::FileSection;
use crate::tree::Data;

/// What a limit for bringing a cluster up may be: a control plane in a cloud
/// takes a quarter of an hour.
const LIMITS: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(4 * 3600);

/// Commands that bring a cluster up with a network and take it down again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provision {
    /// Brings it up; `{network}` stands for the level.
    pub up: Option<String>,
    /// Takes it down.
    pub down: Option<String>,
    /// Longest time that bringing it up may take.
    pub limit: Option<Duration>,
}

impl Provision {
    /// The commands that are run, each with its key, unless others were typed in their
    /// place; none where the clusters `stand`.
    pub fn used(self, stands: bool, [up, down]: [bool; 2]) -> Vec<(&'static str, String)> {
        let own_up = self.up.filter(|_| !up && !stands);
        let makes = own_up.is_some() || up;
        let own_down = self.down.filter(|_| !down && makes);
        let named = [("up", own_up), ("down", own_down)].into_iter();
        named
            .filter_map(|(key, command)| Some((key, command?)))
            .collect()
    }
}

/// Reads `target`: a word, or sections of which only that of clusters exists.
pub(crate) fn read(root: &FileSection<'_>) -> Result<Provision, SpecError> {
    match root.get("target").map(|value| &value.data) {
        Some(Data::Table(_)) => {}
        // The command line picks the target; here the word only has to name one.
        _ => {
            root.choice("target", keys::TARGETS)?;
            return Ok(Provision::default());
        }
    }
    let Some(target) = root.section("target", "[target]")? else {
        return Ok(Provision::default());
    };
    target.refuse_unknown(&["kubernetes"])?;
    let Some(section) = target.section("kubernetes", "[target.kubernetes]")? else {
        return Ok(Provision::default());
    };
    section.refuse_unknown(keys::PROVISION)?;
    Ok(Provision {
        up: command(&section, "up")?,
        down: command(&section, "down")?,
        limit: section.duration("limit", LIMITS)?,
    })
}

fn command(section: &FileSection<'_>, key: &str) -> Result<Option<String>, SpecError> {
    match section.text(key)? {
        Some((text, place)) if text.trim().is_empty() => Err(SpecError::at(
            place,
            format!("`{key}` is an empty command"),
            "write a command for the shell, such as \"make cluster CNI={network}\"",
        )),
        other => Ok(other.map(|(text, _)| text.to_owned())),
    }
}

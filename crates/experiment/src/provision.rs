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

//! What would be set, for people and for scripts.

use std::fmt::Write as _;

use serde::Serialize;

use crate::error::TuneError;
use crate::journal::read;
use crate::proposal::{Adjustment, Proposal, proposals};
use crate::root::Root;

/// What would be set on a machine, and what is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shown {
    /// What would be set now.
    pub proposals: Vec<Proposal>,
    /// What `tune` has set and not put back: its command runs, or it was killed.
    pub standing: Vec<Adjustment>,
}

impl Shown {
    /// Looks at a machine; changes nothing.
    ///
    /// # Errors
    ///
    /// A journal that cannot be read.
    pub fn of(root: &Root) -> Result<Self, TuneError> {
        Ok(Self {
            proposals: proposals(root),
            standing: read(root)?,
        })
    }

    /// A line for each change: what it is of, what is now, what it would be, where, and why.
    /// Files with the same change share a line.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for proposal in &self.proposals {
            let Proposal { name, why, .. } = proposal;
            let mut line = |rest: String| {
                // Writing to a string does not fail.
                let _ = writeln!(text, "{name:<16} {rest}");
            };
            if let Some(missing) = proposal.missing {
                line(format!("cannot be set here; lacks {missing}"));
            } else if proposal.adjustments.is_empty() {
                line("nothing to set".to_owned());
            }
            for (first, more) in groups(&proposal.adjustments) {
                let Adjustment {
                    file, before, set, ..
                } = first;
                let more = match more {
                    0 => String::new(),
                    _ => format!(" and {more} more"),
                };
                line(format!("{before} → {set}  {file}{more}: {why}"));
            }
        }
        if !self.standing.is_empty() {
            let _ = writeln!(
                text,
                "\nFiles that are tuned now: {}. If no `plumbline tune` or `run --tune` runs, one was \
                 killed:\n`plumbline tune --restore` puts them back.",
                self.standing.len()
            );
        }
        text
    }
}

/// The first of those with the same change, and how many more there are.
fn groups(adjustments: &[Adjustment]) -> Vec<(&Adjustment, usize)> {
    let mut groups: Vec<(&Adjustment, usize)> = Vec::new();
    for one in adjustments {
        let same =
            |it: &&mut (&Adjustment, usize)| it.0.before == one.before && it.0.set == one.set;
        match groups.iter_mut().find(same) {
            Some(group) => group.1 += 1,
            None => groups.push((one, 0)),
        }
    }
    groups
}

//! One thing that was looked at, and what came of it.

use std::fmt;

use serde::Serialize;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// As it should be.
    Good,
    /// Worth knowing; the numbers stand.
    Note,
    /// Numbers suffer, or a run is not possible.
    Bad,
}

/// How far a finding can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Certainty {
    /// The kernel says so, or it was tried.
    Certain,
    /// It was so while it was watched, and may be otherwise during a run.
    Sampled,
    /// The kernel does not show it.
    Unknown,
}

/// One thing that was looked at, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at: `CPU governor`.
    #[serde(rename = "check")]
    pub what: &'static str,
    /// How much it matters.
    pub level: Severity,
    /// How far it can be relied on.
    pub certainty: Certainty,
    /// What was seen.
    #[serde(rename = "finding")]
    pub evidence: String,
    /// What to do about it; `None` where all is well.
    pub remedy: Option<String>,
}

impl Finding {
    /// As it should be.
    pub(crate) fn good(what: &'static str, evidence: impl Into<String>) -> Self {
        Self {
            what,
            level: Severity::Good,
            certainty: Certainty::Certain,
            evidence: evidence.into(),
            remedy: None,
        }
    }

    /// Worth knowing.
    pub(crate) fn note(
        what: &'static str,
        evidence: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            level: Severity::Note,
            remedy: Some(remedy.into()),
            ..Self::good(what, evidence)
        }
    }

    /// Numbers suffer.
    pub(crate) fn bad(
        what: &'static str,
        evidence: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            level: Severity::Bad,
            ..Self::note(what, evidence, remedy)
        }
    }

    /// The same, relied on so far.
    pub(crate) fn with(self, certainty: Certainty) -> Self {
        Self { certainty, ..self }
    }
}

/// As lines for people: the mark, how sure it is, what was looked at and what was seen, and
/// below it the remedy.
impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.level {
            Severity::Good => "ok",
            Severity::Note => "note",
            Severity::Bad => "BAD",
        };
        let sure = match self.certainty {
            Certainty::Certain => "certain",
            Certainty::Sampled => "sampled",
            Certainty::Unknown => "unknown",
        };
        let (what, evidence) = (self.what, &self.evidence);
        writeln!(out, "{mark:<4}  {sure:<7}  {what:<20} {evidence}")?;
        match &self.remedy {
            Some(remedy) => writeln!(out, "{:<36}{remedy}", ""),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_told_how_sure_it_is_and_what_to_do() {
        let sampled = Finding::bad("loss", "7 of 500", "nft list ruleset");
        let shown = sampled.with(Certainty::Sampled).to_string();
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[0], "BAD   sampled  loss                 7 of 500");
        assert_eq!(lines[1].find("nft"), lines[0].find("7 of 500"));
        let good = Finding::good("reach", "both ways").to_string();
        assert_eq!(good, "ok    certain  reach                both ways\n");
    }
}

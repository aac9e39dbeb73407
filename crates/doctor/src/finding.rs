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

/// A command that sets right what was found, or shows more of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RemedyCommand {
    /// Where it is to be run: `pod1`, or words for a machine.
    pub place: String,
    /// What a shell there is given.
    pub command: String,
}

impl RemedyCommand {
    fn new(place: &str, command: impl Into<String>) -> Self {
        Self {
            place: place.to_owned(),
            command: command.into(),
        }
    }
}

/// What became of a finding when the commands of its remedy were run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tried {
    /// It is no longer found.
    Gone,
    /// It is still found.
    Remains,
    /// A command ended badly.
    Failed,
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
    /// The remedy as commands, in the order in which they are to be run; none where it takes
    /// somebody to look first.
    pub commands: Vec<RemedyCommand>,
    /// Commands that change nothing and show where to look first.
    pub looks: Vec<RemedyCommand>,
    /// What became of it when they were run; `None` where they were not.
    pub tried: Option<Tried>,
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
            commands: Vec::new(),
            looks: Vec::new(),
            tried: None,
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

    /// The same, with one more command that sets it right, to be run there.
    pub(crate) fn by(mut self, place: &str, command: impl Into<String>) -> Self {
        self.commands.push(RemedyCommand::new(place, command));
        self
    }

    /// The same, with more commands that show where to look, to be run there.
    pub(crate) fn shown_by<T: Into<String>>(
        mut self,
        place: &str,
        commands: impl IntoIterator<Item = T>,
    ) -> Self {
        let looks = commands.into_iter();
        self.looks
            .extend(looks.map(|it| RemedyCommand::new(place, it)));
        self
    }

    /// The same, relied on so far.
    pub(crate) fn with(self, certainty: Certainty) -> Self {
        Self { certainty, ..self }
    }
}

/// As lines for people: the mark, how sure it is, what was looked at and what was seen, and
/// below it the remedy, its commands, those that show more first, and what became of them.
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
        let tried = self.tried.map(|tried| match tried {
            Tried::Gone => "was run: it is gone",
            Tried::Remains => "was run: it is still there",
            Tried::Failed => "could not be run",
        });
        let looks = self.looks.chunk_by(|one, next| one.place == next.place);
        let looks = looks.map(|there| {
            let commands: Vec<&str> = there.iter().map(|it| it.command.as_str()).collect();
            format!("look in {}: {}", there[0].place, commands.join("; "))
        });
        let commands = self.commands.iter();
        let commands = commands.map(|it| format!("in {}: {}", it.place, it.command));
        let lines = self.remedy.iter().cloned().chain(looks).chain(commands);
        for line in lines.chain(tried.map(str::to_owned)) {
            writeln!(out, "{:<36}{line}", "")?;
        }
        Ok(())
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
        let mut mended = Finding::bad("MTU", "differs", "make it equal").by("pod1", "ip link");
        mended.tried = Some(Tried::Gone);
        let shown = mended.to_string();
        assert!(shown.contains("  in pod1: ip link\n"), "{shown}");
        assert!(shown.ends_with("was run: it is gone\n"), "{shown}");
        let looked = Finding::bad("reach", "nothing", "find out").shown_by("pod1", ["a", "b"]);
        let shown = looked.shown_by("node1", ["c"]).to_string();
        let told: Vec<&str> = shown.lines().skip(2).map(str::trim).collect();
        assert_eq!(told, ["look in pod1: a; b", "look in node1: c"]);
        let good = Finding::good("reach", "both ways").to_string();
        assert_eq!(good, "ok    certain  reach                both ways\n");
    }
}

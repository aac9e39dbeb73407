//! Why a workload is refused, in the terms in which it was asked for.

use std::fmt;
use std::ops::RangeInclusive;

use crate::key::Key;

/// What is wrong with a workload. Its rules stand once, for experiment files,
/// for flags of `plumbline load` and for plans read from disk; only the words
/// of the remedy differ.
///
/// In its texts `{key}`, `{rate}` and `{duration}` stand for those keys, and
/// `{without}` for how to undo the key, as each [`Spelling`] writes them.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    key: Key,
    problem: String,
    remedy: String,
    /// Where the flags of `plumbline load` take another one.
    remedy_of_flags: Option<&'static str>,
    /// Whether the value is at fault, and not that the key is there at all.
    pub(crate) is_of_value: bool,
}

/// How keys are written where a refusal is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// As keys of an experiment file: `keep_alive`.
    File,
    /// As flags of `plumbline load`: `--no-keep-alive`.
    Flags,
}

impl Spelling {
    fn key(self, key: Key) -> String {
        match self {
            Self::File => format!("`{}`", key.name()),
            Self::Flags => key.flag().to_owned(),
        }
    }

    fn fill(self, text: &str, key: Key) -> String {
        let key = self.key(key);
        let without = match self {
            Self::File => "remove it".to_owned(),
            Self::Flags => format!("leave {key} out"),
        };
        text.replace("{without}", &without)
            .replace("{key}", &key)
            .replace("{rate}", &self.key(Key::Rate))
            .replace("{duration}", &self.key(Key::Duration))
    }
}

impl Refusal {
    pub(crate) fn new(key: Key, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            key,
            problem: problem.into(),
            remedy: remedy.into(),
            remedy_of_flags: None,
            is_of_value: false,
        }
    }

    /// With another remedy for the flags of `plumbline load`.
    pub(crate) fn in_flags(self, remedy: &'static str) -> Self {
        Self {
            remedy_of_flags: Some(remedy),
            ..self
        }
    }

    /// A value that is not possible; `possible` says which are.
    pub(crate) fn value(key: Key, given: impl fmt::Display, possible: &str) -> Self {
        let problem = format!("{{key}} is {given}, which is not possible");
        Self {
            is_of_value: true,
            ..Self::new(key, problem, format!("use {possible}"))
        }
    }

    /// A number outside of `bounds`.
    pub(crate) fn bounds(key: Key, given: impl fmt::Display, bounds: &RangeInclusive<u32>) -> Self {
        let (least, most) = (bounds.start(), bounds.end());
        let possible = format!("a whole number from {least} to {most}");
        Self::value(key, given, &possible)
    }

    /// The key that is at fault.
    pub fn key(&self) -> Key {
        self.key
    }

    /// What is wrong, in one sentence.
    pub fn problem(&self, spelling: Spelling) -> String {
        spelling.fill(&self.problem, self.key)
    }

    /// What to do about it.
    pub fn remedy(&self, spelling: Spelling) -> String {
        let of_flags = self.remedy_of_flags.filter(|_| spelling == Spelling::Flags);
        spelling.fill(of_flags.unwrap_or(&self.remedy), self.key)
    }

    /// Problem and remedy in one line.
    pub fn in_line(&self, spelling: Spelling) -> String {
        format!("{}; {}", self.problem(spelling), self.remedy(spelling))
    }
}

/// In the words of experiment files.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_line(Spelling::File))
    }
}

impl std::error::Error for Refusal {}

//! What an experiment asks a target for, in words that only the target can read.

use crate::source::SourceSpan;

/// A name of a network or a path as an experiment writes it, before the target
/// says what it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// Every one that works here.
    All,
    /// Those that people usually compare.
    Usual,
    /// One, by its name or another word for it.
    Named(&'a str),
}

impl<'a> Wanted<'a> {
    /// Reads a word.
    pub fn new(word: &'a str) -> Self {
        match word {
            "all" => Self::All,
            "usual" => Self::Usual,
            name => Self::Named(name),
        }
    }

    /// The word, as it is written.
    pub fn word(self) -> &'a str {
        match self {
            Self::All => "all",
            Self::Usual => "usual",
            Self::Named(name) => name,
        }
    }

    /// The name, unless it stands for a group.
    pub fn name(self) -> Option<&'a str> {
        match self {
            Self::All | Self::Usual => None,
            Self::Named(name) => Some(name),
        }
    }
}

/// What an experiment asks a target for: a network and, where the experiment
/// names one, a path in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked<'a> {
    /// The network.
    pub network: Wanted<'a>,
    /// The path; `None` for whatever paths the network is measured on.
    pub path: Option<Wanted<'a>>,
}

impl<'a> Asked<'a> {
    /// A network alone, as it is written.
    pub fn network(word: &'a str) -> Self {
        Self {
            network: Wanted::new(word),
            path: None,
        }
    }
}

/// A word of the file, and where it stands; the place is `None` for a default.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) place: Option<SourceSpan>,
}

impl Word {
    /// What holds where the file says nothing.
    pub(crate) fn default(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            place: None,
        }
    }

    pub(crate) fn written((text, place): (&str, &SourceSpan)) -> Self {
        Self {
            text: text.to_owned(),
            place: Some(place.clone()),
        }
    }
}

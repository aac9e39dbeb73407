//! What an experiment asks a target for, in words that only the target can read.

use crate::source::SourceSpan;
use crate::{Scene, Tuning, Variant};

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
/// names one, a path in it, or a variant of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked<'a> {
    /// The network.
    pub network: Wanted<'a>,
    /// The path; `None` for whatever paths the network is measured on.
    pub path: Option<Wanted<'a>>,
    /// What is to be set differently on it; `None` for the network as it is.
    pub variant: Option<AskedVariant<'a>>,
}

impl<'a> Asked<'a> {
    /// A network alone, as it is written.
    pub fn network(word: &'a str) -> Self {
        Self {
            network: Wanted::new(word),
            path: None,
            variant: None,
        }
    }
}

/// A variant as an experiment asks for it, of a network that the target still has to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedVariant<'a> {
    /// What its section is called.
    pub(crate) section: &'a str,
    pub(crate) tuning: Tuning,
    /// Whether the section is of every network.
    pub(crate) is_of_each: bool,
    /// Whether nobody asked for it by its name, so that it is left out, with a warning,
    /// where it cannot be had.
    pub is_optional: bool,
}

impl AskedVariant<'_> {
    /// The variant of a network.
    #[must_use]
    pub fn of(&self, scene: Scene) -> Scene {
        let name = match self.is_of_each {
            // One that has no name is not told from others.
            true if !scene.network.is_empty() => format!("{}+{}", scene.network, self.section),
            _ => self.section.to_owned(),
        };
        let tuning = self.tuning;
        Scene {
            variant: Some(Variant { name, tuning }),
            ..scene
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

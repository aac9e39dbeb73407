//! One row of the table of factors.

use crate::tree::SpannedValue;
use crate::{Scene, SpecError, section};

/// A level as an experiment writes it, and where.
#[derive(Clone, Copy)]
pub struct WrittenLevel<'a>(pub(crate) &'a SpannedValue);

impl WrittenLevel<'_> {
    /// As one of some values that are words in files.
    pub(super) fn word<T: Copy>(
        self,
        key: &str,
        all: &[T],
        word: fn(T) -> &'static str,
    ) -> Result<T, SpecError> {
        let known: Vec<_> = all.iter().map(|it| (word(*it), *it)).collect();
        section::choice(key, self.0, &known)
    }
}

/// How the levels of a factor are read.
#[derive(Clone, Copy)]
pub enum LevelSyntax {
    /// A word that only the target can read: the name of a network or a path.
    Word,
    /// Part of a word, and so no key of its own: the backends of `cluster-ip:3`.
    PartOfWord,
    /// A level that is put into the scene.
    Level(fn(WrittenLevel<'_>, &mut Scene) -> Result<(), SpecError>),
}

/// A property of the scene that an experiment may vary.
pub struct Factor {
    /// Key in `[factors]`, long flag, and column: one word.
    pub name: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// What the help calls its levels.
    pub value_name: &'static str,
    /// The factor without which this one says nothing.
    pub of: Option<&'static str>,
    /// How levels are read.
    pub reading: LevelSyntax,
    /// The level of a scene, as written in files.
    pub level: fn(&Scene) -> String,
    /// The level as labels show it where the factor varies; empty for one that needs no
    /// mention.
    pub label: fn(&Scene) -> String,
    /// The level as headings show it, such as `IPv4`; `None` where it needs no
    /// mention, or the name of the network says it.
    pub heading: fn(&Scene) -> Option<String>,
    /// The level as a number, where a cost may grow with it; `None` for a level that
    /// is none.
    pub number: fn(&Scene) -> Option<f64>,
    /// What one more is called, such as `service`; empty where levels are no numbers.
    pub one: &'static str,
}

impl Factor {
    /// Whether experiments and flags may set it.
    pub fn is_key(&self) -> bool {
        !matches!(self.reading, LevelSyntax::PartOfWord)
    }
}

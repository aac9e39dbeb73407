//! Typed reading of one section, with the place of whatever is wrong.

use std::ops::RangeInclusive;
use std::time::Duration;

use jiff::SignedDuration;

use crate::ceiling::MAX_LEVELS;
use crate::nearest::suggestion;
use crate::source::SourceSpan;
use crate::tree::{Data, SectionTable, SpannedValue};
use crate::{SpecError, typed};

/// What is wanted where another kind of data stands, and what to do.
const WHOLE: (&str, &str) = ("a whole number", "write it without quotes");

/// A section and its name for messages, such as `[design]`.
#[derive(Clone, Copy)]
pub(crate) struct FileSection<'a> {
    pub(crate) title: &'static str,
    pub(crate) table: &'a SectionTable,
}

impl<'a> FileSection<'a> {
    /// Refuses keys that are not known here.
    pub(crate) fn refuse_unknown(&self, known: &[&str]) -> Result<(), SpecError> {
        match self
            .table
            .iter()
            .find(|(key, _)| !known.contains(&key.as_str()))
        {
            None => Ok(()),
            Some((key, entry)) => Err(SpecError::at(
                &entry.key,
                format!("`{key}` is not a key of {}", self.title),
                suggestion(key, known),
            )),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'a SpannedValue> {
        self.table.get(key).map(|entry| &entry.value)
    }

    /// The value of a key as one kind of data; `wanted` and `remedy` are for messages
    /// about any other.
    fn read<T>(
        &self,
        key: &str,
        (wanted, remedy): (&str, &str),
        take: impl FnOnce(&'a Data) -> Option<T>,
    ) -> Result<Option<T>, SpecError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        match take(&value.data) {
            None => Err(wrong_type(key, value, wanted, remedy)),
            taken => Ok(taken),
        }
    }

    /// The section within.
    pub(crate) fn section(
        &self,
        key: &str,
        title: &'static str,
    ) -> Result<Option<FileSection<'a>>, SpecError> {
        self.read(
            key,
            ("a section", &format!("write {title}")),
            |data| match data {
                Data::Table(table) => Some(FileSection { title, table }),
                _ => None,
            },
        )
    }

    pub(crate) fn text(&self, key: &str) -> Result<Option<(&'a str, &'a SourceSpan)>, SpecError> {
        self.get(key).map(|value| text(key, value)).transpose()
    }

    /// A whole number of any size.
    pub(crate) fn integer(&self, key: &str) -> Result<Option<i64>, SpecError> {
        self.read(key, WHOLE, |data| match data {
            Data::Integer(number) => Some(*number),
            _ => None,
        })
    }

    pub(crate) fn whole(
        &self,
        key: &str,
        bounds: RangeInclusive<u32>,
    ) -> Result<Option<u32>, SpecError> {
        self.get(key)
            .map(|value| whole(key, value, &bounds))
            .transpose()
    }

    pub(crate) fn boolean(&self, key: &str) -> Result<Option<bool>, SpecError> {
        let expected = ("true or false", "write true or false");
        self.read(key, expected, |data| match data {
            Data::Boolean(flag) => Some(*flag),
            _ => None,
        })
    }

    /// One of some words.
    pub(crate) fn choice<T: Copy>(
        &self,
        key: &str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, SpecError> {
        self.get(key)
            .map(|value| choice(key, value, choices))
            .transpose()
    }

    pub(crate) fn duration(
        &self,
        key: &str,
        bounds: RangeInclusive<Duration>,
    ) -> Result<Option<Duration>, SpecError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let Data::Text(written) = &value.data else {
            return Err(wrong_type(
                key,
                value,
                "a length of time",
                "write it with its unit in quotes, such as \"400ms\" or \"2s\"",
            ));
        };
        let parsed = written.parse::<SignedDuration>().map_err(|_| {
            SpecError::at(
                &value.place,
                format!("`{key}` is \"{written}\", which is not a length of time"),
                "write a number with its unit, such as \"400ms\", \"2s\" or \"1m 30s\"",
            )
        })?;
        match Duration::try_from(parsed) {
            Ok(duration) if bounds.contains(&duration) => Ok(Some(duration)),
            _ => Err(SpecError::at(
                &value.place,
                format!("`{key}` is \"{written}\", which is not possible"),
                format!("use a time from {:?} to {:?}", bounds.start(), bounds.end()),
            )),
        }
    }

    /// The levels of a factor: a list, or one value that stands for a list of one.
    pub(crate) fn levels(&self, key: &str) -> Result<Option<Vec<&'a SpannedValue>>, SpecError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        match &value.data {
            Data::List(values) if values.is_empty() => Err(SpecError::at(
                &value.place,
                format!("factor `{key}` has no levels"),
                "give at least one, or remove the key",
            )),
            Data::List(values) if values.len() > MAX_LEVELS => Err(SpecError::at(
                &value.place,
                format!("factor `{key}` has more than {MAX_LEVELS} levels"),
                "use fewer levels",
            )),
            Data::List(values) => Ok(Some(values.iter().collect())),
            _ => Ok(Some(vec![value])),
        }
    }
}

pub(crate) fn text<'a>(
    key: &str,
    value: &'a SpannedValue,
) -> Result<(&'a str, &'a SourceSpan), SpecError> {
    match &value.data {
        Data::Text(text) => Ok((text, &value.place)),
        _ => Err(wrong_type(key, value, "text", "put it in double quotes")),
    }
}

/// A value as a whole number.
pub(crate) fn whole(
    key: &str,
    value: &SpannedValue,
    bounds: &RangeInclusive<u32>,
) -> Result<u32, SpecError> {
    let Data::Integer(number) = value.data else {
        let (wanted, remedy) = WHOLE;
        return Err(wrong_type(key, value, wanted, remedy));
    };
    match u32::try_from(number) {
        Ok(number) if bounds.contains(&number) => Ok(number),
        _ => Err(SpecError::at(
            &value.place,
            format!("`{key}` is {number}, which is not possible"),
            format!(
                "use a whole number from {} to {}",
                bounds.start(),
                bounds.end()
            ),
        )),
    }
}

/// A value as one of some words.
pub(crate) fn choice<T: Copy>(
    key: &str,
    value: &SpannedValue,
    choices: &[(&str, T)],
) -> Result<T, SpecError> {
    let (word, place) = text(key, value)?;
    let known: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    choices
        .iter()
        .find(|(name, _)| *name == word)
        .map(|(_, choice)| *choice)
        .ok_or_else(|| {
            SpecError::at(
                place,
                format!("`{key}` cannot be \"{word}\""),
                suggestion(word, &known),
            )
        })
}

/// `"10%"` as 0.10; `None` for anything else.
pub(crate) fn percent(value: &SpannedValue) -> Option<f64> {
    match &value.data {
        Data::Text(text) => typed::percent(text),
        _ => None,
    }
}

pub(crate) fn number(key: &str, value: &SpannedValue) -> Result<f64, SpecError> {
    match value.data {
        // i64 to f64 loses digits only far above any ceiling.
        Data::Integer(number) => Ok(number as f64),
        Data::Float(number) => Ok(number),
        _ => Err(wrong_type(
            key,
            value,
            "a number",
            "write it without quotes",
        )),
    }
}

pub(crate) fn wrong_type(key: &str, value: &SpannedValue, wanted: &str, remedy: &str) -> SpecError {
    SpecError::at(
        &value.place,
        format!("`{key}` takes {wanted}, not {}", value.data.name()),
        remedy,
    )
}

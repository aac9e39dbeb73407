//! One `key=value` of the command line.

use std::ops::Range;
use std::sync::Arc;

use crate::SpecError;
use crate::keys::DURING;
use crate::source::{SourceKind, SourceSpan, SourceText};
use crate::tree::{self, Data, Entry, SpannedValue};

/// A key, split at its dots, and the value for it.
pub(super) struct Assignment {
    pub(super) path: Vec<String>,
    pub(super) key: SourceSpan,
    pub(super) value: SpannedValue,
}

impl Assignment {
    /// From `--set key=value`.
    pub(super) fn from_set(typed: &str) -> Result<Self, SpecError> {
        const FLAG: &str = "--set ";
        let source = source(format!("{FLAG}{typed}"));
        let Some(equals) = source.text.find('=') else {
            let all = FLAG.len()..source.text.len();
            return Err(SpecError::at(
                &SourceSpan::new(&source, all),
                "this sets nothing: it has no `=`",
                "write --set key=value, such as --set workload.rate=1000",
            ));
        };
        let key = FLAG.len()..equals;
        let path = source.text[key.clone()].trim().to_owned();
        Self::new(&source, &path, key, equals + 1)
    }

    /// From a flag that stands for a key.
    pub(super) fn from_flag(flag: &str, key: &str, value: &str) -> Result<Self, SpecError> {
        let source = source(format!("{flag} {value}"));
        Self::new(&source, key, 0..flag.len(), flag.len() + 1)
    }

    fn new(
        source: &Arc<SourceText>,
        path: &str,
        key: Range<usize>,
        value_from: usize,
    ) -> Result<Self, SpecError> {
        // Only these take lists; elsewhere a comma is part of a sentence.
        let splits =
            path == "workload" || path.starts_with("workload.") || path.starts_with("factors.");
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        let all = value_from..source.text.len();
        let value = match path.last() {
            // A command is as it was typed.
            Some(last) if last == DURING => SpannedValue {
                data: Data::Text(source.text[all.clone()].to_owned()),
                place: SourceSpan::new(source, all),
            },
            _ => value(source, all, splits)?,
        };
        Ok(Self {
            path,
            key: SourceSpan::new(source, key),
            value,
        })
    }

    pub(super) fn entry(&self) -> Entry {
        Entry {
            key: self.key.clone(),
            value: self.value.clone(),
        }
    }
}

fn source(text: String) -> Arc<SourceText> {
    Arc::new(SourceText {
        name: "command line".to_owned(),
        text,
        kind: SourceKind::Flag,
    })
}

/// A value as shells leave it: without quotes, lists with commas. TOML in
/// brackets or quotes is read as TOML.
fn value(
    source: &Arc<SourceText>,
    span: Range<usize>,
    splits: bool,
) -> Result<SpannedValue, SpecError> {
    let span = trim(&source.text, span);
    let text = &source.text[span.clone()];
    if text.starts_with('[') {
        return tree::parse_value(source, span);
    }
    if !splits || !text.contains(',') {
        return scalar(source, span);
    }
    let mut values = Vec::new();
    let mut start = span.start;
    for piece in text.split(',') {
        let piece_span = trim(&source.text, start..start + piece.len());
        values.push(scalar(source, piece_span)?);
        start += piece.len() + 1;
    }
    Ok(SpannedValue {
        place: SourceSpan::new(source, span),
        data: Data::List(values),
    })
}

fn scalar(source: &Arc<SourceText>, span: Range<usize>) -> Result<SpannedValue, SpecError> {
    let text = &source.text[span.clone()];
    let place = SourceSpan::new(source, span.clone());
    if text.is_empty() {
        return Err(SpecError::at(
            &place,
            "here is no value",
            "write one, or leave the flag out",
        ));
    }
    if text.starts_with('"') {
        return tree::parse_value(source, span);
    }
    match tree::parse_value(source, span) {
        Ok(
            value @ SpannedValue {
                data: Data::Integer(_) | Data::Float(_) | Data::Boolean(_),
                ..
            },
        ) => Ok(value),
        // Not TOML, or a date: a bare word.
        _ => Ok(SpannedValue {
            place,
            data: Data::Text(text.to_owned()),
        }),
    }
}

fn trim(text: &str, span: Range<usize>) -> Range<usize> {
    let part = &text[span.clone()];
    let start = span.start + (part.len() - part.trim_start().len());
    start..start + part.trim().len()
}

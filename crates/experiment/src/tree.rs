//! TOML with the place of every key and value, so that a message about any of
//! them can show its line, and so that flags can replace any of them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use crate::SpecError;
use crate::source::{SourceSpan, SourceText};

/// Longest experiment file that is read, in bytes (S-7).
const MAX_FILE_BYTES: usize = 1 << 20;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct SpannedValue {
    pub(crate) place: SourceSpan,
    pub(crate) data: Data,
}

#[derive(Clone, Debug)]
pub(crate) enum Data {
    Text(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Datetime,
    List(Vec<SpannedValue>),
    Table(SectionTable),
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: SourceSpan,
    pub(crate) value: SpannedValue,
}

pub(crate) type SectionTable = BTreeMap<String, Entry>;

impl Entry {
    /// The section that it is, where it is one.
    pub(crate) fn table(&mut self) -> Option<&mut SectionTable> {
        match &mut self.value.data {
            Data::Table(table) => Some(table),
            _ => None,
        }
    }
}

impl Data {
    /// What it is, for messages.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Integer(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::Boolean(_) => "true or false",
            Self::Datetime => "a date",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

pub(crate) fn parse_file(source: &Arc<SourceText>) -> Result<SectionTable, SpecError> {
    if source.text.len() > MAX_FILE_BYTES {
        return Err(SpecError::nowhere(
            format!(
                "{} has {} bytes; an experiment has at most {MAX_FILE_BYTES}",
                source.name,
                source.text.len()
            ),
            "check that it is an experiment file",
        ));
    }
    let root = DeTable::parse(&source.text).map_err(|e| syntax_error(source, 0, &e))?;
    let reader = Reader { source, offset: 0 };
    reader.table(root.get_ref())
}

/// Reads one value that starts `offset` bytes into the source.
pub(crate) fn parse_value(
    source: &Arc<SourceText>,
    span: Range<usize>,
) -> Result<SpannedValue, SpecError> {
    let text = &source.text[span.clone()];
    let value = DeValue::parse(text).map_err(|e| syntax_error(source, span.start, &e))?;
    let reader = Reader {
        source,
        offset: span.start,
    };
    reader.value(value.get_ref(), value.span())
}

fn syntax_error(source: &Arc<SourceText>, offset: usize, error: &toml::de::Error) -> SpecError {
    let span = error.span().unwrap_or(0..0);
    let place = SourceSpan::new(source, span.start + offset..span.end + offset);
    SpecError::at(
        &place,
        format!("this is not TOML: {}", error.message()),
        "text goes in double quotes, lists in [ ], one key = value per line; see https://toml.io",
    )
}

struct Reader<'a> {
    source: &'a Arc<SourceText>,
    offset: usize,
}

impl Reader<'_> {
    fn place(&self, span: Range<usize>) -> SourceSpan {
        SourceSpan::new(
            self.source,
            span.start + self.offset..span.end + self.offset,
        )
    }

    fn table(&self, table: &DeTable<'_>) -> Result<SectionTable, SpecError> {
        table
            .iter()
            .map(|(key, value)| {
                let entry = Entry {
                    key: self.place(key.span()),
                    value: self.value(value.get_ref(), value.span())?,
                };
                Ok((key.get_ref().to_string(), entry))
            })
            .collect()
    }

    fn value(&self, value: &DeValue<'_>, span: Range<usize>) -> Result<SpannedValue, SpecError> {
        let place = self.place(span);
        let data = match value {
            DeValue::String(text) => Data::Text(text.to_string()),
            DeValue::Integer(number) => {
                let parsed = i64::from_str_radix(number.as_str(), number.radix());
                Data::Integer(parsed.map_err(|_| out_of_range(&place))?)
            }
            DeValue::Float(number) => {
                Data::Float(number.as_str().parse().map_err(|_| out_of_range(&place))?)
            }
            DeValue::Boolean(flag) => Data::Boolean(*flag),
            DeValue::Datetime(_) => Data::Datetime,
            DeValue::Array(values) => Data::List(
                values
                    .iter()
                    .map(|v| self.value(v.get_ref(), v.span()))
                    .collect::<Result<_, _>>()?,
            ),
            DeValue::Table(table) => Data::Table(self.table(table)?),
        };
        Ok(SpannedValue { place, data })
    }
}

fn out_of_range(place: &SourceSpan) -> SpecError {
    SpecError::at(
        place,
        "this number is too large to be read",
        "use a smaller number",
    )
}

//! `--workload rr,stream`: which workloads an experiment keeps or gets.

use std::sync::Arc;

use super::assignment::Assignment;
use super::tables::{remove_from_file, workloads};
use crate::key::WORKLOAD_FACTORS;
use crate::nearest::suggestion;
use crate::section::{FileSection, text};
use crate::source::{SourceKind, SourceSpan, SourceText};
use crate::tree::{self, Data, Entry, SectionTable, SpannedValue};
use crate::{SpecError, TaskKind, load};

/// Replaces the workloads by the named ones: those in the file of that name or
/// kind, or else one of that kind with default values.
pub(super) fn choose(root: &mut SectionTable, assignment: &Assignment) -> Result<(), SpecError> {
    let words = match &assignment.value.data {
        Data::List(values) => values.iter().collect(),
        _ => vec![&assignment.value],
    };
    let standing: Vec<SectionTable> = workloads(root).map(|table| table.clone()).collect();
    let mut chosen: Vec<SpannedValue> = Vec::new();
    for value in words {
        let (word, place) = text("workload", value)?;
        let mut found: Vec<SectionTable> = standing
            .iter()
            .filter(|table| is_called(table, word))
            .cloned()
            .collect();
        if found.is_empty() {
            let mut table = with_defaults(kind_called(word, place)?)?;
            remove_factors(root, &mut table);
            found.push(table);
        }
        chosen.extend(found.into_iter().map(|table| SpannedValue {
            place: place.clone(),
            data: Data::Table(table),
        }));
    }
    let entry = Entry {
        key: assignment.key.clone(),
        value: SpannedValue {
            place: assignment.value.place.clone(),
            data: Data::List(chosen),
        },
    };
    root.insert("workload".to_owned(), entry);
    remove_idle_factors(root)
}

/// Whether a workload section has this name, or is of this kind.
pub(super) fn is_called(table: &SectionTable, word: &str) -> bool {
    let is =
        |key| matches!(table.get(key).map(|e| &e.value.data), Some(Data::Text(t)) if t == word);
    is("name") || is("kind")
}

fn kind_called(word: &str, place: &SourceSpan) -> Result<TaskKind, SpecError> {
    TaskKind::all()
        .find(|kind| kind.name() == word)
        .ok_or_else(|| {
            let names: Vec<&str> = TaskKind::all().map(TaskKind::name).collect();
            SpecError::at(
                place,
                format!("there is no workload `{word}`, neither in the experiment nor built in"),
                suggestion(word, &names),
            )
        })
}

/// A section of this kind, at its built-in rate.
fn with_defaults(kind: TaskKind) -> Result<SectionTable, SpecError> {
    let rate = kind.load().and_then(|load| load.row().built_in_rate);
    let rate = rate.map_or(String::new(), |rate| format!("rate = {rate}\n"));
    let source = Arc::new(SourceText {
        name: "built-in workload".to_owned(),
        text: format!("kind = \"{}\"\n{rate}", kind.name()),
        kind: SourceKind::Default,
    });
    tree::parse_file(&source)
}

/// A key that is a factor needs no default.
fn remove_factors(root: &SectionTable, table: &mut SectionTable) {
    if let Some(Data::Table(factors)) = root.get("factors").map(|e| &e.value.data) {
        table.retain(|key, _| !factors.contains_key(key));
    }
}

/// Removes the file's factors that concern none of the workloads left.
fn remove_idle_factors(root: &mut SectionTable) -> Result<(), SpecError> {
    let mut kinds = Vec::new();
    for table in workloads(root) {
        let section = FileSection {
            title: "a workload",
            table,
        };
        kinds.push(load::kind(&section)?);
    }
    if let Some(Data::Table(factors)) = root.get_mut("factors").map(|e| &mut e.value.data) {
        for key in WORKLOAD_FACTORS.iter() {
            if !kinds.iter().any(|kind| kind.varies(key)) {
                remove_from_file(factors, key);
            }
        }
    }
    Ok(())
}

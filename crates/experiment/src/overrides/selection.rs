//! `--workload rr,stream`: which workloads an experiment keeps or gets.

use std::sync::Arc;

use super::{Assignment, remove_from_file, workloads};
use crate::keys::{KINDS, WORKLOAD_FACTORS};
use crate::nearest::suggestion;
use crate::section::{Section, text};
use crate::source::{Place, Source, SourceKind};
use crate::tree::{self, Data, Entry, Table, Value};
use crate::{SpecError, WorkloadKind, load};

/// Replaces the workloads by those that are named: the file's of that name or
/// kind, or one of that kind with default values.
pub(super) fn choose(root: &mut Table, assignment: &Assignment) -> Result<(), SpecError> {
    let words = match &assignment.value.data {
        Data::List(values) => values.iter().collect(),
        _ => vec![&assignment.value],
    };
    let standing: Vec<Table> = workloads(root).map(|table| table.clone()).collect();
    let mut chosen: Vec<Value> = Vec::new();
    for value in words {
        let (word, place) = text("workload", value)?;
        let mut found: Vec<Table> = standing
            .iter()
            .filter(|table| is_called(table, word))
            .cloned()
            .collect();
        if found.is_empty() {
            let mut table = with_defaults(kind_called(word, place)?)?;
            remove_factors(root, &mut table);
            found.push(table);
        }
        chosen.extend(found.into_iter().map(|table| Value {
            place: place.clone(),
            data: Data::Table(table),
        }));
    }
    let entry = Entry {
        key: assignment.key.clone(),
        value: Value {
            place: assignment.value.place.clone(),
            data: Data::List(chosen),
        },
    };
    root.insert("workload".to_owned(), entry);
    remove_idle_factors(root)
}

/// Whether a workload section has this name, or is of this kind.
pub(super) fn is_called(table: &Table, word: &str) -> bool {
    let is =
        |key| matches!(table.get(key).map(|e| &e.value.data), Some(Data::Text(t)) if t == word);
    is("name") || is("kind")
}

fn kind_called(word: &str, place: &Place) -> Result<WorkloadKind, SpecError> {
    let known: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
    KINDS
        .iter()
        .find(|(name, _)| *name == word)
        .map(|(_, kind)| *kind)
        .ok_or_else(|| {
            SpecError::at(
                place,
                format!("there is no workload `{word}`, neither in the experiment nor built in"),
                suggestion(word, &known),
            )
        })
}

/// A section of this kind. Rates are modest: well below what two CPUs carry,
/// and for new connections below where ephemeral ports run out (N-5).
fn with_defaults(kind: WorkloadKind) -> Result<Table, SpecError> {
    let rate = match kind {
        WorkloadKind::Rr => "rate = 5000",
        WorkloadKind::Crr => "rate = 400",
        WorkloadKind::Http => "rate = 2000",
        WorkloadKind::Datagram => "rate = 10000",
        WorkloadKind::Stream => "",
    };
    let source = Arc::new(Source {
        name: "built-in workload".to_owned(),
        text: format!("kind = \"{}\"\n{rate}\n", kind.as_str()),
        kind: SourceKind::Default,
    });
    tree::parse_file(&source)
}

/// What is a factor needs no default.
fn remove_factors(root: &Table, table: &mut Table) {
    if let Some(Data::Table(factors)) = root.get("factors").map(|e| &e.value.data) {
        table.retain(|key, _| !factors.contains_key(key));
    }
}

/// Factors of the file that concern none of the workloads that are left.
fn remove_idle_factors(root: &mut Table) -> Result<(), SpecError> {
    let mut kinds = Vec::new();
    for table in workloads(root) {
        let section = Section {
            title: "a workload",
            table,
        };
        kinds.push(load::kind(&section)?);
    }
    if let Some(Data::Table(factors)) = root.get_mut("factors").map(|e| &mut e.value.data) {
        for key in WORKLOAD_FACTORS {
            if !kinds.iter().any(|kind| kind.varies(key)) {
                remove_from_file(factors, key);
            }
        }
    }
    Ok(())
}

//! Workload sections times the factors over their keys.

use crate::key::WORKLOAD_FACTORS;
use crate::load::{self, TimedTask};
use crate::section::FileSection;
use crate::source::SourceSpan;
use crate::tree::{Data, Entry, SectionTable, SpannedValue};
use crate::{SpecError, Timing};

/// Most workloads that one experiment may hold once expanded.
const MAX_WORKLOADS: usize = 256;

/// Every workload section, once for each combination of factor levels.
pub(crate) fn loads(
    root: &FileSection<'_>,
    factors: &FileSection<'_>,
    design: Timing,
) -> Result<Vec<TimedTask>, SpecError> {
    let mut loads: Vec<TimedTask> = Vec::new();
    let mut used = Vec::new();
    for (place, table) in tables(root)? {
        let section = FileSection {
            title: "a workload",
            table,
        };
        // Refused before expansion, so that the message shows the section's line.
        section.refuse_unknown(&crate::keys::workload())?;
        let kind = load::kind(&section)?;
        let keys: Vec<&str> = WORKLOAD_FACTORS
            .iter()
            .copied()
            .filter(|key| factors.table.contains_key(*key) && kind.varies(key))
            .collect();
        used.extend(&keys);
        for variant in variants(table, factors, &keys)? {
            let load = read(&variant, design)?;
            let name = load.task.name();
            if loads.iter().any(|other| other.task.name() == name) {
                return Err(SpecError::at(
                    place,
                    format!("two workloads are named `{name}`"),
                    "give one of them a `name` of its own",
                ));
            }
            if loads.len() == MAX_WORKLOADS {
                return Err(too_many(place));
            }
            loads.push(load);
        }
    }
    refuse_unused(factors, &used)?;
    Ok(loads)
}

fn too_many(place: &SourceSpan) -> SpecError {
    let problem = format!("the factors make more than {MAX_WORKLOADS} workloads");
    SpecError::at(place, problem, "use fewer levels")
}

/// The `[[workload]]` sections in order.
fn tables<'a>(
    root: &FileSection<'a>,
) -> Result<Vec<(&'a SourceSpan, &'a SectionTable)>, SpecError> {
    let remedy = "add a section [[workload]] with kind = \"rr\"";
    let Some(value) = root.get("workload") else {
        return Err(SpecError::nowhere("the experiment has no workload", remedy));
    };
    let Data::List(values) = &value.data else {
        return Err(SpecError::at(
            &value.place,
            "`workload` is not a list of sections",
            "write [[workload]] with two brackets",
        ));
    };
    if values.is_empty() {
        return Err(SpecError::at(
            &value.place,
            "the list of workloads is empty",
            remedy,
        ));
    }
    values
        .iter()
        .map(|value| match &value.data {
            Data::Table(table) => Ok((&value.place, table)),
            _ => Err(SpecError::at(
                &value.place,
                "this workload is not a section",
                "write [[workload]] with its keys below",
            )),
        })
        .collect()
}

struct VariedWorkload {
    table: SectionTable,
    /// What distinguishes it from its siblings, such as ` connections=16`.
    suffix: String,
    /// The same without the share of a maximum.
    base_suffix: String,
}

/// The section with each combination of levels put in.
fn variants(
    table: &SectionTable,
    factors: &FileSection<'_>,
    keys: &[&str],
) -> Result<Vec<VariedWorkload>, SpecError> {
    let mut variants = vec![VariedWorkload {
        table: table.clone(),
        suffix: String::new(),
        base_suffix: String::new(),
    }];
    for key in keys {
        let factor = &factors.table[*key];
        if let Some(entry) = table.get(*key) {
            return Err(SpecError::at(
                &entry.key,
                format!("`{key}` is a factor and a key of this workload"),
                "remove it here, or from [factors]",
            ));
        }
        let Some(levels) = factors.levels(key)? else {
            continue;
        };
        if variants.len() * levels.len() > MAX_WORKLOADS {
            return Err(too_many(&factor.key));
        }
        variants = variants
            .iter()
            .flat_map(|variant| {
                levels
                    .iter()
                    .map(|level| vary(variant, key, factor, level, levels.len()))
            })
            .collect();
    }
    Ok(variants)
}

fn vary(
    from: &VariedWorkload,
    key: &str,
    factor: &Entry,
    level: &SpannedValue,
    levels: usize,
) -> VariedWorkload {
    let mut table = from.table.clone();
    let entry = Entry {
        key: factor.key.clone(),
        value: level.clone(),
    };
    table.insert(key.to_owned(), entry);
    let addition = if levels > 1 {
        format!(" {key}={}", written(level))
    } else {
        String::new()
    };
    let base_addition = if key == "load" { "" } else { &addition };
    VariedWorkload {
        table,
        suffix: from.suffix.clone() + &addition,
        base_suffix: from.base_suffix.clone() + base_addition,
    }
}

/// A level as it stands in names.
fn written(level: &SpannedValue) -> String {
    match &level.data {
        Data::Text(text) => text.clone(),
        Data::Integer(number) => number.to_string(),
        Data::Float(number) => number.to_string(),
        Data::Boolean(flag) => flag.to_string(),
        // Refused when the workload is read.
        Data::Datetime | Data::List(_) | Data::Table(_) => "?".to_owned(),
    }
}

fn read(variant: &VariedWorkload, design: Timing) -> Result<TimedTask, SpecError> {
    let section = FileSection {
        title: "a workload",
        table: &variant.table,
    };
    let mut load = load::read(&section, design)?;
    load.task.name_mut().push_str(&variant.suffix);
    load.base_name.push_str(&variant.base_suffix);
    Ok(load)
}

/// A factor that no workload uses would seem to vary something.
fn refuse_unused(factors: &FileSection<'_>, used: &[&str]) -> Result<(), SpecError> {
    let unused = WORKLOAD_FACTORS
        .iter()
        .filter(|key| !used.contains(key))
        .find_map(|key| Some((key, factors.table.get(*key)?)));
    match unused {
        None => Ok(()),
        Some((key, entry)) => Err(SpecError::at(
            &entry.key,
            format!("no workload of this experiment has a `{key}`"),
            "remove the factor, or add a workload that it concerns",
        )),
    }
}

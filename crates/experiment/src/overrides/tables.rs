//! The tables of a file that flags change.

use crate::tree::{Data, SectionTable};

/// The `[[workload]]` tables; parsing made sure of their shape.
pub(super) fn workloads(root: &mut SectionTable) -> impl Iterator<Item = &mut SectionTable> {
    let values = match root.get_mut("workload").map(|e| &mut e.value.data) {
        Some(Data::List(values)) => values.as_mut_slice(),
        _ => &mut [],
    };
    values.iter_mut().filter_map(|value| match &mut value.data {
        Data::Table(table) => Some(table),
        _ => None,
    })
}

/// Removes a key that a flag has overruled, unless another flag set it.
pub(super) fn remove_from_file(table: &mut SectionTable, key: &str) {
    if table.get(key).is_some_and(|entry| !entry.key.is_flag()) {
        table.remove(key);
    }
}

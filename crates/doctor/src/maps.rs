//! How full the maps of eBPF programs are that packets pass.

use plumbline_sys::bpf::{BpfError, MapFill};

use crate::finding::{Certainty, Finding};

const WHAT: &str = "eBPF maps";
/// Above this share an entry soon finds no room.
const FULL: f64 = 0.8;
/// Above this share a map that throws old entries out is likely to do so.
const EVICTS: f64 = 0.95;

/// Judges all maps of the kernel.
pub(crate) fn judge(seen: Result<Vec<MapFill>, BpfError>) -> Finding {
    let maps = match seen {
        Ok(maps) => maps,
        Err(error) => {
            return Finding::good(WHAT, format!("not seen: {error}")).with(Certainty::Unknown);
        }
    };
    let above = |evicts: bool, share: f64| {
        let meant = maps
            .iter()
            .filter(|it| it.evicts == evicts && used(it) >= share);
        let each: Vec<String> = meant.map(say).collect();
        each.join(", ")
    };
    let full = above(false, FULL);
    if !full.is_empty() {
        return Finding::bad(
            WHAT,
            format!("nearly full: {full}"),
            "who loaded the programs has to make them larger: where one is full, new pods, services \
             or connections are refused",
        )
        .shown_by("the node", ["bpftool map show"]);
    }
    let evicts = above(true, EVICTS);
    if !evicts.is_empty() {
        return Finding::note(
            WHAT,
            format!("full, so that old entries make room for new ones: {evicts}"),
            "where they are of connections that still stand, packets of these go astray: have who \
             loaded the programs make the maps larger",
        )
        .shown_by("the node", ["bpftool map show"]);
    }
    let of = |count: usize| if count == 1 { "map" } else { "maps" };
    let uncounted = maps.iter().filter(|it| it.entries.is_none()).count();
    let rest = match uncounted {
        0 => String::new(),
        _ => format!("; {uncounted} {} too large to count", of(uncounted)),
    };
    let fullest = maps
        .iter()
        .max_by(|one, other| used(one).total_cmp(&used(other)));
    Finding::good(
        WHAT,
        match fullest {
            None => "no program that packets pass has any".to_owned(),
            Some(most) => format!(
                "{} {} of programs that packets pass; the fullest: {}{rest}",
                maps.len(),
                of(maps.len()),
                say(most)
            ),
        },
    )
}

/// The share of a map that is used.
fn used(map: &MapFill) -> f64 {
    map.entries.unwrap_or_default() as f64 / map.max_entries.max(1) as f64
}

fn say(map: &MapFill) -> String {
    let entries = map.entries.map_or("?".to_owned(), |it| it.to_string());
    format!(
        "{} (id {}) {entries} of {}",
        map.name, map.id, map.max_entries
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Severity;

    fn map(name: &str, evicts: bool, entries: u64) -> MapFill {
        MapFill {
            name: name.to_owned(),
            id: 7,
            evicts,
            entries: Some(entries),
            max_entries: 100,
        }
    }

    #[test]
    fn a_map_that_is_nearly_full_is_named() {
        let found = judge(Ok(vec![map("pods", false, 80), map("tracked", true, 10)]));
        assert_eq!(found.level, Severity::Bad);
        assert!(
            found.evidence.contains("pods (id 7) 80 of 100"),
            "{found:?}"
        );
        assert!(!found.evidence.contains("tracked"), "{found:?}");
    }

    #[test]
    fn one_that_throws_entries_out_is_full_later_and_less_bad() {
        let seen = |entries| judge(Ok(vec![map("tracked", true, entries)]));
        assert_eq!(seen(94).level, Severity::Good);
        assert_eq!(seen(95).level, Severity::Note);
    }

    #[test]
    fn what_is_not_counted_is_said() {
        let mut large = map("tracked", true, 0);
        large.entries = None;
        let found = judge(Ok(vec![map("pods", false, 3), large]));
        assert_eq!(found.level, Severity::Good);
        assert!(found.evidence.contains("pods (id 7) 3 of 100"), "{found:?}");
        assert!(found.evidence.contains("1 map too large"), "{found:?}");
    }
}

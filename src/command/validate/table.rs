//! The outcomes on a page.

use serde_json::json;

use super::bouts::Bout;
use super::point::Outcome;

/// One row per figure; with `figures` what was to be reached, too.
pub(super) fn to_text(outcomes: &[Outcome], missing: &[(&Bout, &str)], figures: bool) -> String {
    let mut rows = vec![header(figures)];
    rows.extend(outcomes.iter().map(|outcome| row(outcome, figures)));
    for (row, note) in rows
        .iter_mut()
        .skip(1)
        .zip(outcomes.iter().map(|it| &it.note))
    {
        row.extend(note.clone());
    }
    let mut text = aligned(&rows);
    let pairs = outcomes.iter().map(|it| it.pairs.len()).max().unwrap_or(0);
    text += &format!(
        "medians of {pairs} alternating pairs; ratio = ours/theirs, Hodges–Lehmann, with its exact 95 % interval where there are six pairs\n"
    );
    for (bout, program) in missing {
        text += &format!(
            "not compared: {} ({}): `{program}` is not installed\n",
            bout.against, bout.name
        );
    }
    text
}

fn header(figures: bool) -> Vec<String> {
    let mut cells = vec!["what", "against", "theirs", "ours", "ratio", "95 %"];
    if figures {
        cells.extend(["reach", "met"]);
    }
    cells.into_iter().map(str::to_owned).collect()
}

fn row(outcome: &Outcome, figures: bool) -> Vec<String> {
    let dash = || "-".to_owned();
    let metric = outcome.metric;
    let mut cells = vec![
        outcome.what.to_owned(),
        outcome.against.to_owned(),
        outcome.theirs.map_or_else(dash, |it| metric.show(it)),
        outcome.ours.map_or_else(dash, |it| metric.show(it)),
        outcome.ratio.map_or_else(dash, |it| format!("{it:.3}")),
        outcome
            .interval
            .map_or_else(dash, |(low, high)| format!("{low:.3} to {high:.3}")),
    ];
    if figures {
        cells.push(outcome.reach.clone().unwrap_or_else(dash));
        let word = |met| if met { "yes" } else { "NO" };
        cells.push(outcome.met.map_or_else(dash, |met| word(met).to_owned()));
    }
    cells
}

/// Text on the left, figures on the right; what a row has beyond the columns
/// of the first follows as it is.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let lengths = rows.iter().map(|row| row[column].chars().count());
        lengths.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let pad = " ".repeat(width - cell.chars().count());
            if column < 2 {
                line += &format!("{cell}{pad}  ");
            } else {
                line += &format!("{pad}{cell}  ");
            }
        }
        line.extend(row.iter().skip(columns).map(String::as_str));
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// The same for scripts; latencies and CPU in nanoseconds, memory in bytes.
pub(super) fn to_json(outcomes: &[Outcome], missing: &[(&Bout, &str)]) -> serde_json::Value {
    let missing: Vec<_> = missing
        .iter()
        .map(|(bout, program)| json!({"comparison": bout.name, "program": program}))
        .collect();
    json!({"figures": outcomes, "missing": missing})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_the_letters() {
        let rows =
            [["a", "b", "µ 1"], ["long", "b", "22222"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(aligned(&rows), "a     b    µ 1\nlong  b  22222\n");
    }

    #[test]
    fn a_note_follows_its_row_and_moves_no_column() {
        let rows = [vec!["a", "b", "1"], vec!["a", "b", "22", "too few"]];
        let rows = rows.map(|row| row.into_iter().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(aligned(&rows), "a  b   1\na  b  22  too few\n");
    }
}

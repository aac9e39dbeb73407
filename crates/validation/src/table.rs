//! The judgements on a page.

use serde_json::json;

use crate::comparisons::Comparisons;
use crate::judgement::FigureVerdict;

/// One row per figure; with `figures` what was to be reached, too.
pub(crate) fn to_text(comparisons: &Comparisons, figures: bool) -> String {
    let judgements = &comparisons.judgements;
    let mut rows = vec![header(figures)];
    rows.extend(judgements.iter().map(|judgement| row(judgement, figures)));
    let mut text = aligned(&rows);
    let pairs = judgements.iter().map(|it| it.pairs.len()).max();
    text += &format!(
        "medians of {} alternating pairs; ratio = ours/theirs, Hodges–Lehmann, with its exact 95 % interval where there are six pairs\n",
        pairs.unwrap_or(0)
    );
    for (bout, program) in &comparisons.missing {
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

fn row(judgement: &FigureVerdict, figures: bool) -> Vec<String> {
    let dash = || "-".to_owned();
    let quantity = judgement.quantity;
    let mut cells = vec![
        judgement.what.clone(),
        judgement.against.to_owned(),
        judgement.theirs.map_or_else(dash, |it| quantity.show(it)),
        judgement.ours.map_or_else(dash, |it| quantity.show(it)),
        judgement.ratio.map_or_else(dash, |it| format!("{it:.3}")),
        judgement
            .interval
            .map_or_else(dash, |(low, high)| format!("{low:.3} to {high:.3}")),
    ];
    if figures {
        cells.push(judgement.reach.clone().unwrap_or_else(dash));
        let word = |met| if met { "yes" } else { "NO" };
        cells.push(judgement.met.map_or_else(dash, |met| word(met).to_owned()));
    }
    // Beyond the columns: it follows its row as it is.
    cells.extend(judgement.note.clone());
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
pub(crate) fn to_json(comparisons: &Comparisons) -> serde_json::Value {
    let missing = comparisons.missing.iter();
    let missing =
        missing.map(|(bout, program)| json!({"comparison": bout.name, "program": program}));
    let failed = comparisons.failed.iter();
    let failed =
        failed.map(|(bout, error)| json!({"comparison": bout.name, "error": error.to_string()}));
    json!({
        "figures": comparisons.judgements,
        "missing": missing.collect::<Vec<_>>(),
        "failed": failed.collect::<Vec<_>>(),
    })
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

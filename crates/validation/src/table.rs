//! The judgements on a page.

use serde_json::json;

use crate::comparisons::Comparisons;
use crate::judgement::FigureVerdict;

impl Comparisons {
    /// One row per figure; with `figures` also what is to be reached.
    pub fn to_text(&self, figures: bool) -> String {
        let mut rows = vec![header(figures)];
        rows.extend(
            self.judgements
                .iter()
                .map(|judgement| row(judgement, figures)),
        );
        let mut text = aligned(&rows);
        let pairs = self.judgements.iter().map(|it| it.pairs.len()).max();
        text += &format!(
            "medians of {} alternating pairs; ratio = ours/theirs, geometric mean, with its exact 95 % interval where there are six pairs\n",
            pairs.unwrap_or(0)
        );
        for (bout, program) in &self.missing {
            text += &format!(
                "not compared: {} ({}): `{program}` is not installed\n",
                bout.against, bout.name
            );
        }
        text
    }

    /// The same for scripts; latencies and CPU in nanoseconds, memory in bytes.
    pub fn to_json(&self) -> serde_json::Value {
        let missing = self.missing.iter();
        let missing =
            missing.map(|(bout, program)| json!({"comparison": bout.name, "program": program}));
        let failed = self.failed.iter();
        let failed = failed
            .map(|(bout, error)| json!({"comparison": bout.name, "error": error.to_string()}));
        json!({
            "figures": self.judgements,
            "missing": missing.collect::<Vec<_>>(),
            "failed": failed.collect::<Vec<_>>(),
        })
    }
}

fn header(figures: bool) -> Vec<String> {
    let mut cells = vec!["what", "against", "theirs", "ours", "ratio", "95 %"];
    if figures {
        cells.extend(["reach", "met"]);
    }
    cells.into_iter().map(str::to_owned).collect()
}

fn row(judgement: &FigureVerdict, figures: bool) -> Vec<String> {
    let show = |value: f64| judgement.quantity.show(value);
    let interval = judgement.interval;
    let word = |met| if met { "yes" } else { "NO" };
    let mut shown = vec![
        Some(judgement.what.clone()),
        Some(judgement.against.to_owned()),
        judgement.theirs.map(show),
        judgement.ours.map(show),
        judgement.ratio.map(|it| format!("{it:.3}")),
        interval.map(|(low, high)| format!("{low:.3} to {high:.3}")),
    ];
    if figures {
        shown.push(judgement.reach.clone());
        shown.push(judgement.met.map(|met| word(met).to_owned()));
    }
    let cells = shown
        .into_iter()
        .map(|cell| cell.unwrap_or_else(|| "-".to_owned()));
    let mut cells: Vec<String> = cells.collect();
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

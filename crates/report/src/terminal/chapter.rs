//! The chapters of a report for the terminal: those that have more than a page's
//! details.

use super::bars::bars;
use super::style::{Style, Tint};
use super::table::{Cell, Column, Columns};
use crate::analysis::Summary;
use crate::answer;
use crate::chapter::{Chapter, Pictured, Piece, chapters};
use crate::figures::Table;
use crate::number;

pub(super) fn render(summary: &Summary, style: Style) -> String {
    let mut out = String::new();
    let mut left_out: Vec<String> = Vec::new();
    let said = answer::answer(summary).unwrap_or_default();
    for chapter in chapters(summary) {
        let pieces = chapter.pieces.iter();
        let shown = pieces.map(|one| piece(summary, one, &said, style));
        let shown: String = shown.collect();
        match chapter.pictured {
            Pictured::Laws(_) if shown.is_empty() => left_out.push(chapter.title),
            _ if shown.is_empty() => (),
            _ => out += &with_title(&chapter, &shown, style),
        }
    }
    if !left_out.is_empty() {
        let titles = format!("In the page: {}", left_out.join("; "));
        out += &style.lines(Tint::Faint, &titles);
        out.push('\n');
    }
    out
}

fn with_title(chapter: &Chapter<'_>, shown: &str, style: Style) -> String {
    let title = style.lines(Tint::Heading, &chapter.title);
    // What a workload is stands below the first table.
    let about = match chapter.pictured {
        Pictured::Section(..) => String::new(),
        _ => style.lines(Tint::Faint, &chapter.about),
    };
    format!("{title}{about}{shown}\n")
}

/// A piece of a chapter, without sentences that were said at the top.
fn piece(summary: &Summary, piece: &Piece<'_>, said: &str, style: Style) -> String {
    let lines = |lines: &[String], most: usize| -> String {
        let is_new = |one: &&String| !said.contains(one.as_str());
        let new: Vec<&String> = lines.iter().filter(is_new).collect();
        let shown = new.iter().take(most);
        let shown: String = shown.map(|one| style.lines(Tint::Plain, one)).collect();
        let more = new.len().saturating_sub(most);
        if more == 0 || most == 0 {
            return shown;
        }
        shown + &style.lines(Tint::Faint, &format!("{more} more in the page"))
    };
    match piece {
        Piece::Text(_) | Piece::Details { .. } => String::new(),
        Piece::List(all, most) => lines(all, *most),
        Piece::Table { title, table, .. } => {
            let title = (!title.is_empty()).then(|| style.lines(Tint::Heading, title));
            title.unwrap_or_default() + &Columns::new(columns(table)).render(style)
        }
        Piece::Letters(all) => {
            let (legend, rows) = all.split_last().expect("a map has a legend");
            let rows: String = rows.iter().map(|row| format!("{row}\n")).collect();
            rows + &style.lines(Tint::Faint, legend)
        }
        Piece::Bins(of) => bars(summary, of),
    }
}

/// Where it is too wide, what stands in brackets is given up first, then columns from
/// the right.
fn columns(table: &Table) -> Vec<Column> {
    let column = |(at, head): (usize, &String)| {
        let texts = || table.rows.iter().map(|row| row[at].as_str());
        let cells = |texts: Vec<&str>| -> Vec<Cell> {
            let plain = texts.into_iter().map(number::plain);
            plain.map(Cell::plain).collect()
        };
        if at == 0 {
            return Column::left(head, cells(texts().collect()));
        }
        let before = |text| str::split_once(text, " (").map_or(text, |(before, _)| before);
        let forms = vec![
            cells(texts().collect()),
            cells(texts().map(before).collect()),
        ];
        Column::right(head, (table.head.len() - at) as u8, forms)
    };
    table.head.iter().enumerate().map(column).collect()
}

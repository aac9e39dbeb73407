//! A run as Markdown, to paste into an issue or a document.

use crate::analysis::Summary;
use crate::chapter::{Piece, chapters};
use crate::figures::{self, Table};
use crate::sentence::{self, Subject};
use crate::{answer, describe, number, overview, terminal};

/// The report of one run: sentences, tables, warnings.
pub fn render(summary: &Summary) -> String {
    let mut out = format!("# {}\n\n", escape(&summary.question));
    for finding in terminal::unenforced(summary) {
        out += &format!("**{}**\n\n", escape(&finding));
    }
    if summary.is_cut_off() {
        out += "**This run was cut off; what follows is what there is of it.**\n\n";
    }
    if let Some(answer) = answer::answer(summary) {
        out += &format!("{}.\n\n", escape(&answer));
    }
    if summary.has_results() {
        let overview = overview::table(summary);
        let legend = escape(&overview::legend(summary));
        out += &format!("{}\n", table(&overview));
        if !legend.is_empty() {
            out += &format!("{legend}\n\n");
        }
    }
    for cluster in &summary.clusters {
        out += &format!("{}\n\n", escape(&describe::cluster(cluster)));
    }
    for sentence in sentence::sentences(summary) {
        let mark = if sentence.subject == Subject::Compared {
            "**"
        } else {
            ""
        };
        let (label, rest) = (escape(&sentence.label), escape(&sentence.rest));
        out += &format!("- {mark}{label}{mark}{rest}\n");
    }
    if let Some(link) = describe::link(summary) {
        out += &format!("\n{}\n", escape(&link));
    }
    for chapter in chapters(summary) {
        let (title, about) = (escape(&chapter.title), escape(&chapter.about));
        out += &format!("\n## {title}\n\n{about}\n");
        for piece in &chapter.pieces {
            out += &shown(summary, piece);
        }
    }
    out += "\n## What to distrust\n\n";
    for notice in &summary.notices {
        out += &format!("- {}\n", escape(&terminal::notice_text(summary, notice)));
    }
    for outlier in terminal::outliers(summary) {
        out += &format!("- {}\n", escape(&outlier));
    }
    for maximum in terminal::maxima(summary) {
        out += &format!("- {}\n", escape(&maximum));
    }
    let account = escape(&terminal::account_text(summary));
    out += &format!(
        "- {account}\n\nExperiment {}, started {}, on {}.\n",
        escape(&summary.experiment),
        escape(&describe::time(&summary.started)),
        escape(&summary.target)
    );
    out
}

/// A piece of a chapter, after an empty line.
fn shown(summary: &Summary, piece: &Piece<'_>) -> String {
    let list = |lines: &[String]| -> String {
        let line = |line: &String| format!("- {}\n", escape(line));
        lines.iter().map(line).collect()
    };
    let text = match piece {
        Piece::Text(text) => format!("{}\n", escape(text)),
        Piece::List(lines, _) => list(lines),
        Piece::Table {
            title,
            about,
            table: of,
        } => {
            let title = (!title.is_empty()).then(|| format!("### {}\n\n", escape(title)));
            let about = (!about.is_empty()).then(|| format!("{}\n\n", escape(about)));
            format!(
                "{}{}{}",
                title.unwrap_or_default(),
                about.unwrap_or_default(),
                table(of)
            )
        }
        // Indented, so that no name can end a fence.
        Piece::Letters(lines) => lines.iter().map(|line| format!("    {line}\n")).collect(),
        Piece::Bins(of) => format!(
            "How many there are in each bin:\n\n{}",
            table(&figures::bins(summary, of))
        ),
        Piece::Details { pieces, .. } => {
            return pieces.iter().map(|one| shown(summary, one)).collect();
        }
    };
    match text.is_empty() {
        true => text,
        false => format!("\n{text}"),
    }
}

/// A table as Markdown.
pub(crate) fn table(table: &Table) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut out = line(table.head.iter().map(|name| escape(name)).collect());
    let rules = table.head.iter().enumerate();
    out += &line(
        rules
            .map(|(column, _)| if column == 0 { ":--" } else { "--:" }.to_owned())
            .collect(),
    );
    for row in &table.rows {
        out += &line(row.iter().map(|cell| escape(cell)).collect());
    }
    out
}

/// Text that Markdown shows as it is: no markup, no HTML, one line (S-8).
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in number::plain(&describe::clean(text)).chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '!' | '#' | '~' => {
                escaped.push('\\');
                escaped.push(c);
            }
            c => escaped.push(c),
        }
    }
    escaped
}

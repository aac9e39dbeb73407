//! A run as Markdown, to paste into an issue or a document.

use crate::analysis::Summary;
use crate::figures::{self, Table};
use crate::sentence::{self, Subject};
use crate::{beside, describe, mesh, number, overview, set_up, spans, terminal};

/// The report of one run: sentences, tables, warnings.
pub fn render(summary: &Summary) -> String {
    let mut out = format!("# {}\n\n", escape(&summary.question));
    if summary.is_cut_off() {
        out += "**This run was cut off; what follows is what there is of it.**\n\n";
    }
    if let Some(answer) = overview::answer(summary) {
        out += &format!("{}.\n\n", escape(&answer));
    }
    let overview = overview::table(summary);
    if !overview.rows.is_empty() {
        out += &format!("{}\n{}\n\n", table(&overview), escape(overview::LEGEND));
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
    out += &meshes(summary);
    for (section, distribution) in summary.sections.iter().zip(&summary.distributions) {
        let baseline = &summary.treatments[section.baseline].treatment;
        out += &format!(
            "\n## {}\n\n{}; {}.\n\n",
            escape(baseline.task.name()),
            escape(&describe::task(&baseline.task)),
            describe::place(summary, baseline)
        );
        out += &table(&figures::figures(summary, section));
        if let Some(percentiles) = figures::percentiles(summary, section) {
            out += "\nPercentiles of all trials together, with their interval within this run:\n\n";
            out += &table(&percentiles);
        }
        if let Some(spans) = spans::table(summary, section) {
            out += &format!("\n{}\n\n", spans::ABOUT);
            out += &table(&spans);
        }
        if let Some(distribution) = distribution {
            out += "\nEvery latency; mean and deviation are for display, no verdict rests on them:\n\n";
            out += &table(&figures::distribution(
                summary,
                distribution,
                section.baseline,
            ));
            out += "\nHow many there are in each bin:\n\n";
            out += &table(&figures::bins(summary, distribution));
        }
        let comparisons = figures::comparisons(summary, section);
        if !comparisons.rows.is_empty() {
            out.push('\n');
            out += &table(&comparisons);
        }
    }
    if let Some(set_up) = set_up::table(summary) {
        out += &format!("\n## Set-up cost\n\n{}\n\n", set_up::ABOUT);
        out += &table(&set_up);
        for line in set_up::failures(summary) {
            out += &format!("\n{}\n", escape(&line));
        }
    }
    out += &published(summary);
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

/// What each pair of nodes showed.
fn meshes(summary: &Summary) -> String {
    let mut out = String::new();
    let Some(mesh) = &summary.mesh else {
        return out;
    };
    for map in &mesh.maps {
        out += &format!(
            "\n## {}\n\n{}.\n\n",
            escape(&mesh::title(summary, map)),
            escape(&mesh::about(mesh, map))
        );
        for finding in mesh::findings(mesh, map) {
            out += &format!("- {}\n", escape(&finding));
        }
        if let Some(lines) = mesh::letters(mesh, map) {
            // Indented, so that no name can end a fence.
            let lines: Vec<String> = lines.iter().map(|line| format!("    {line}\n")).collect();
            out += &format!("\n{}\n{}\n", lines.concat(), escape(mesh::RULE));
        }
        if let Some(pairs) = mesh::table(mesh, map) {
            out.push('\n');
            out += &table(&pairs);
        }
    }
    out
}

/// The published study beside the run.
fn published(summary: &Summary) -> String {
    let Some(study) = &summary.beside else {
        return String::new();
    };
    let mut out = format!(
        "\n## Beside {}\n\n{}\n",
        escape(&beside::name(study)),
        escape(&beside::about(study))
    );
    for one in &study.tables {
        let (workload, about) = beside::title(study, one);
        out += &format!(
            "\n### {}\n\nPublished: {}.",
            escape(&workload),
            escape(&about)
        );
        if let Some(load) = beside::load(summary, one) {
            out += &format!(" Here: {}.", escape(&load));
        }
        out += "\n\n";
        out += &table(&beside::table(study, one));
        out.push('\n');
        for order in beside::orders(study, one) {
            out += &format!("- {}\n", escape(&order));
        }
    }
    if study.tables.is_empty() {
        out += "\nWhat the authors found:\n\n";
        for finding in &study.study.findings {
            out += &format!("- {}\n", escape(finding));
        }
    }
    out
}

fn table(table: &Table) -> String {
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
fn escape(text: &str) -> String {
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

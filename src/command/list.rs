//! `plumbline list`: experiments, networks, workloads.

use std::process::ExitCode;

use plumbline_experiment::{Experiment, TaskKind, ready_made};
use serde::Serialize;

use super::{print, print_json};
use crate::cli::{ListArgs, Listing};

#[derive(Serialize)]
struct ListRow<'a> {
    name: &'a str,
    description: &'a str,
}

pub(crate) fn run(args: &ListArgs) -> anyhow::Result<ExitCode> {
    // Experiments and workloads are the same everywhere.
    if args.what == Listing::Networks && super::kernel::is_elsewhere(args.kernel) {
        return super::kernel::run_inside(None);
    }
    match args.what {
        Listing::Networks => networks(args.json)?,
        Listing::Experiments => {
            let mut experiments = Vec::new();
            for (name, text) in ready_made() {
                experiments.push((name, Experiment::parse(text, name)?));
            }
            let rows: Vec<_> = experiments
                .iter()
                .map(|(name, e)| ListRow {
                    name,
                    description: e.question(),
                })
                .collect();
            named(&rows, args.json)?;
        }
        Listing::Workloads => {
            let rows: Vec<_> = TaskKind::all()
                .map(|kind| ListRow {
                    name: kind.name(),
                    description: kind.purpose(),
                })
                .collect();
            named(&rows, args.json)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn named(rows: &[ListRow<'_>], json: bool) -> anyhow::Result<()> {
    if json {
        return print_json(&rows);
    }
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let text: String = rows
        .iter()
        .map(|row| format!("{:<width$} {}\n", row.name, row.description))
        .collect();
    print(&text)
}

fn networks(json: bool) -> anyhow::Result<()> {
    // Probing builds each kind of device, in namespaces of our own.
    plumbline_sys::namespace::enter_private()?;
    let listed = plumbline_lab::list()?;
    if json {
        return print_json(&listed);
    }
    let names = listed.iter().map(|network| network.about.name.len());
    let width = names.max().unwrap_or(0);
    for network in &listed {
        let about = network.about;
        let state = network.needs.as_deref().unwrap_or("available");
        let (name, blank, summary) = (about.name, "", about.summary);
        print(&format!(
            "{name:<width$} {state}\n{blank:<width$} {summary}\n"
        ))?;
        if !about.aliases.is_empty() {
            let aliases = about.aliases.join(", ");
            print(&format!("{blank:<width$} also: {aliases}\n"))?;
        }
    }
    Ok(())
}

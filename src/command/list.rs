//! `plumbline list`: experiments, networks, workloads.

use std::process::ExitCode;

use plumbline_experiment::{Experiment, ready_made};
use serde::Serialize;

use super::{print, print_json};
use crate::cli::{ListArgs, Listing};

/// Kinds of load with what each is for.
const WORKLOADS: &[(&str, &str)] = &[
    (
        "rr",
        "request and response on open connections, TCP or UDP: latency at a rate",
    ),
    (
        "crr",
        "connect, request, response, close: what a new connection costs",
    ),
    ("stream", "TCP bulk: throughput and CPU per byte"),
    (
        "datagram",
        "UDP bulk by message size: what arrives, and what is lost",
    ),
    (
        "http",
        "HTTP/1.1 GET of a fixed body, keep-alive or a new connection each time",
    ),
];

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
    description: &'a str,
}

/// What scripts hold on to.
#[derive(Serialize)]
struct ListedNetwork<'a> {
    name: &'a str,
    aliases: &'a [&'a str],
    available: bool,
    needs: Option<&'a str>,
    description: &'a str,
}

impl<'a> ListedNetwork<'a> {
    fn new(listing: &'a plumbline_lab::Listing) -> Self {
        Self {
            name: listing.name,
            aliases: listing.aliases,
            available: listing.available(),
            needs: listing.needs.as_deref(),
            description: listing.summary,
        }
    }
}

pub(crate) fn run(args: &ListArgs) -> anyhow::Result<ExitCode> {
    // Experiments and workloads are the same everywhere.
    if args.what == Listing::Networks
        && let Some(code) = super::kernel::elsewhere(args.kernel, None)?
    {
        return Ok(code);
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
                .map(|(name, e)| Named {
                    name,
                    description: e.question(),
                })
                .collect();
            named(&rows, args.json)?;
        }
        Listing::Workloads => {
            let rows: Vec<_> = WORKLOADS
                .iter()
                .map(|&(name, description)| Named { name, description })
                .collect();
            named(&rows, args.json)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn named(rows: &[Named<'_>], json: bool) -> anyhow::Result<()> {
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
        let rows: Vec<_> = listed.iter().map(ListedNetwork::new).collect();
        return print_json(&rows);
    }
    let names = listed.iter().map(|network| network.name.len());
    let width = names.max().unwrap_or(0);
    for network in &listed {
        let state = network.needs.as_deref().unwrap_or("available");
        print(&format!(
            "{:<width$} {state}\n{:<width$} {}\n",
            network.name, "", network.summary
        ))?;
        if !network.aliases.is_empty() {
            print(&format!(
                "{:<width$} also: {}\n",
                "",
                network.aliases.join(", ")
            ))?;
        }
    }
    Ok(())
}

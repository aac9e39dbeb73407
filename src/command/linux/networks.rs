//! `plumbline list networks`.

use std::process::ExitCode;

use super::kernel;
use crate::cli::ListArgs;
use crate::command::{print, print_json};

/// Lists the networks of the kernel that was asked for.
pub(crate) fn list(args: &ListArgs) -> anyhow::Result<ExitCode> {
    if kernel::is_elsewhere(args.kernel) {
        return kernel::run_inside(None);
    }
    // Probing builds each kind of device, in namespaces of our own.
    plumbline_sys::namespace::enter_private()?;
    let listed = plumbline_lab::list()?;
    if args.json {
        print_json(&listed)?;
        return Ok(ExitCode::SUCCESS);
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
    Ok(ExitCode::SUCCESS)
}

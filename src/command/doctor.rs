//! `plumbline doctor`: what will disturb the numbers here, and the remedy.

use std::process::ExitCode;

use plumbline_doctor::{Severity, examine};

use super::{print, print_json};

pub(crate) fn run(json: bool) -> anyhow::Result<ExitCode> {
    // Looked at first, while this process has no thread and its own namespaces.
    let findings = examine();
    if json {
        print_json(&findings)?;
        return Ok(ExitCode::SUCCESS);
    }
    for finding in &findings {
        let mark = match finding.level {
            Severity::Good => "ok  ",
            Severity::Note => "note",
            Severity::Bad => "BAD ",
        };
        print(&format!(
            "{mark}  {:<20} {}\n",
            finding.what, finding.evidence
        ))?;
        if let Some(remedy) = &finding.remedy {
            print(&format!("{:<27}{remedy}\n", ""))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

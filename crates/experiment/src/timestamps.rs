//! Which share of a workload's requests the kernel stamps (L-17).

use crate::section::Section;
use crate::{Driver, SpecError, Workload, WorkloadKind};

/// `"1%"` as 0.01, `"off"` as 0 (L-17).
pub(crate) fn share(section: &Section<'_>) -> Result<f64, SpecError> {
    let Some((text, place)) = section.text("timestamps")? else {
        return Ok(0.0);
    };
    stamped_share(text).ok_or_else(|| {
        SpecError::at(
            place,
            format!("`timestamps` is \"{text}\""),
            "write the share of requests that the kernel stamps, such as \"1%\", or \"off\"",
        )
    })
}

/// Reads a share of requests to be stamped: `off`, or a percentage above 0 and
/// up to 100, such as `1%`.
pub fn stamped_share(text: &str) -> Option<f64> {
    if text == "off" {
        return Some(0.0);
    }
    let percent: f64 = text.strip_suffix('%')?.trim().parse().ok()?;
    (percent > 0.0 && percent <= 100.0).then_some(percent / 100.0)
}

/// Requests that open a connection each cannot be split by stamps, and io_uring
/// does not read them.
pub(crate) fn refuse_contradiction(
    section: &Section<'_>,
    workload: &Workload,
) -> Result<(), SpecError> {
    let Some(entry) = section.table.get("timestamps") else {
        return Ok(());
    };
    if workload.timestamps == 0.0 {
        return Ok(());
    }
    if workload.kind == WorkloadKind::Http && !workload.keep_alive {
        return Err(SpecError::at(
            &entry.key,
            "`timestamps` needs connections that stay open",
            "remove it, or set keep_alive = true",
        ));
    }
    if workload.driver == Driver::Uring {
        return Err(SpecError::at(
            &entry.key,
            "`timestamps` are read by epoll only",
            "remove it, or set driver = \"auto\"",
        ));
    }
    Ok(())
}

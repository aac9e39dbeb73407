//! Putting back what was set, unless somebody else has set it meanwhile.

use std::io;

use nix::libc::{ENODEV, ENXIO};

use crate::proposal::Adjustment;
use crate::root::Root;

/// What became of settings that were to be put back.
#[derive(Debug, Default)]
pub(crate) struct Restored {
    /// How many hold again what they did.
    pub(crate) back: usize,
    /// Those that hold something else than what was set: they stay. One sentence each.
    pub(crate) changed: Vec<String>,
    /// Those that the kernel did not take back.
    pub(crate) failed: Vec<String>,
}

/// Puts values back, the last one first. What went with its device needs nothing. It can
/// be done again, and then does what is left.
pub(crate) fn put_back(root: &Root, adjustments: &[Adjustment]) -> Restored {
    let mut restored = Restored::default();
    for one in adjustments.iter().rev() {
        let Adjustment {
            file, before, set, ..
        } = one;
        if one.owner.as_ref().is_some_and(|it| !root.exists(it)) {
            continue;
        }
        match root.read(file) {
            Ok(now) if now == *before => restored.back += 1,
            Ok(now) if now == *set => match root.write(file, before) {
                Ok(()) => restored.back += 1,
                Err(error) => restored.failed.push(format!("{file}: {error}")),
            },
            Ok(now) => restored.changed.push(format!(
                "left as it is: {file} holds {now}, which somebody has set meanwhile (before: \
                 {before}, tuned: {set})"
            )),
            Err(error) if is_gone(&error) => {}
            Err(error) => restored.failed.push(format!("{file}: {error}")),
        }
    }
    restored
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error
            .raw_os_error()
            .is_some_and(|code| [ENODEV, ENXIO].contains(&code))
}

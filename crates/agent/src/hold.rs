//! A process that keeps a pod as long as a run uses it.

use std::env;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use plumbline_protocol::{LENT, LaunchedOrder};
use plumbline_sys::clock::now_ns;
use plumbline_sys::signal;

use crate::launched;

/// How often it looks whether its pod is to end, where others wait for that.
const SOON: Duration = Duration::from_millis(100);

/// How often it looks: rarely, because the machine is measured.
const LOOK: Duration = Duration::from_secs(60);

/// How many looks in a row may find no agent.
const LOOKS: usize = 10;

/// Returns when no agent has run beside this process for ten minutes. Each pod of a run
/// has one that ends with its controller, so the run is over then, or does without. A pod
/// that was launched has none: there it answers its peer, for as long. In somebody else's pod it
/// stays for as long as it was told to, and ends with that.
pub fn hold() {
    let begun_ns = now_ns();
    let lent = env::var(LENT).ok().and_then(|it| it.parse().ok());
    if let Some(seconds) = lent {
        return stay(Duration::from_secs(seconds));
    }
    if let Some(order) = LaunchedOrder::of_process() {
        // A pod without a network ends early, which the cluster shows.
        let _ = launched::answer(&order, begun_ns, LOOK * LOOKS as u32);
        return;
    }
    // What it was started by is no agent either, where the node is tuned around it.
    let own = [std::process::id(), std::os::unix::process::parent_id()];
    hold_while(LOOK, || has_company(Path::new("/proc"), own));
}

/// Nothing else ends the first process of a container, for which no signal has a usual action.
fn stay(length: Duration) {
    let (since, told) = (Instant::now(), signal::interruption());
    let is_told = || told.as_ref().is_ok_and(|it| it.load(Ordering::SeqCst));
    while since.elapsed() < length && !is_told() {
        thread::sleep(SOON.min(length));
    }
}

fn hold_while(look: Duration, has_company: impl Fn() -> io::Result<bool>) {
    let mut alone = 0;
    while alone < LOOKS {
        thread::sleep(look);
        // What cannot be looked at is kept; the pod has a longest life as well.
        let is_alone = matches!(has_company(), Ok(false));
        alone = if is_alone { alone + 1 } else { 0 };
    }
}

/// Whether `proc` shows other processes than `own`. One that has ended, and that nobody
/// waited for, has no command line.
fn has_company(proc: &Path, own: [u32; 2]) -> io::Result<bool> {
    for entry in fs::read_dir(proc)? {
        let entry = entry?;
        let number = entry.file_name().to_str().and_then(|it| it.parse().ok());
        let is_other = number.is_some_and(|it: u32| !own.contains(&it));
        let command = || fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if is_other && !command().is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn it_ends_after_ten_looks_in_a_row_that_find_nobody() {
        let looks = Cell::new(0);
        hold_while(Duration::ZERO, || {
            looks.set(looks.get() + 1);
            match looks.get() {
                9 => Err(io::ErrorKind::PermissionDenied.into()),
                number => Ok(number == 15),
            }
        });
        assert_eq!(looks.get(), 25);
    }

    #[test]
    fn in_somebody_elses_pod_it_stays_as_long_as_it_was_told() {
        let since = Instant::now();
        stay(Duration::from_millis(30));
        assert!(since.elapsed() >= Duration::from_millis(30));
    }

    #[test]
    fn only_a_process_that_runs_is_company() {
        let proc = tempfile::tempdir().unwrap();
        let add = |name: &str, command: &str| {
            fs::create_dir(proc.path().join(name)).unwrap();
            fs::write(proc.path().join(name).join("cmdline"), command).unwrap();
        };
        add("1", "/plumbline hold");
        add("sys", "x");
        add("7", "");
        assert!(!has_company(proc.path(), [1, 0]).unwrap());
        add("8", "/plumbline agent");
        assert!(has_company(proc.path(), [1, 0]).unwrap());
        assert!(!has_company(proc.path(), [8, 1]).unwrap());
        assert!(has_company(Path::new("/nonexistent"), [1, 0]).is_err());
    }
}

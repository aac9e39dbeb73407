//! Which process one is, in words by which another process can tell later whether it has ended.

use std::fs;
use std::sync::OnceLock;

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;

/// Begins of the kernel's word for its boot: enough to tell machines apart.
const BOOT: usize = 8;

/// This process, as told from all others of all machines: the boot of its kernel, the namespace of
/// its number, the number, and when it began. `None` where the kernel shows no such things.
pub fn own() -> Option<&'static str> {
    static OWN: OnceLock<Option<String>> = OnceLock::new();
    let own = || {
        let pid = std::process::id();
        let (_, began) = state(pid)?;
        Some(format!("{}-{pid}-{began}", world()?))
    };
    OWN.get_or_init(own).as_deref()
}

/// Whether the process of this [identity](own) is known to have ended. Of one in another
/// namespace, on another machine or before the last boot nothing is known.
pub fn has_ended(identity: &str) -> bool {
    let parts = || {
        let (rest, began) = identity.rsplit_once('-')?;
        let (its_world, pid) = rest.rsplit_once('-')?;
        let pid: u32 = pid.parse().ok().filter(|it| *it > 0)?;
        (its_world == world()?).then_some((pid, began))
    };
    let Some((pid, began)) = parts() else {
        return false;
    };
    // The number may have become another's; one that nobody has waited for is still there.
    let is_another = |(state, its_begin)| matches!(state, 'Z' | 'X') || its_begin != began;
    is_free(pid) || state(pid).is_some_and(is_another)
}

/// Whether no process here has this number. Where /proc hides those of others, the kernel still
/// knows them.
pub(crate) fn is_free(pid: u32) -> bool {
    i32::try_from(pid).is_ok_and(|it| kill(Pid::from_raw(it), None) == Err(Errno::ESRCH))
}

/// What tells the numbers of processes here from equal ones elsewhere.
fn world() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    let namespace: String = namespace
        .to_str()?
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    Some(format!("{}-{namespace}", boot.get(..BOOT)?))
}

/// The state of a process, and when it began, in ticks of its kernel (proc_pid_stat(5)).
fn state(pid: u32) -> Option<(char, String)> {
    state_in(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The same by what is in its file.
pub(crate) fn state_in(stat: &str) -> Option<(char, String)> {
    /// Places behind the name, which may have anything in it.
    const BEGAN: usize = 19;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(BEGAN - 1)?.to_owned()))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use super::*;

    /// The identity of another process.
    fn of(pid: u32) -> String {
        format!("{}-{pid}-{}", world().unwrap(), state(pid).unwrap().1)
    }

    #[test]
    fn who_runs_has_not_ended_and_who_was_killed_has() {
        assert!(!has_ended(own().unwrap()));
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let identity = of(child.id());
        assert!(!has_ended(&identity));
        child.kill().unwrap();
        // Though nobody has waited for it yet.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while !has_ended(&identity) {
            assert!(std::time::Instant::now() < deadline, "it does not end");
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(has_ended(&identity));
    }

    #[test]
    fn another_that_has_the_number_now_is_not_it() {
        let (rest, _) = own().unwrap().rsplit_once('-').unwrap();
        assert!(has_ended(&format!("{rest}-1")));
    }

    #[test]
    fn of_another_machine_nothing_is_known() {
        let (_, rest) = own().unwrap().split_once('-').unwrap();
        for strange in [&format!("00000000-{rest}"), "", "7", "a-b-c-d"] {
            assert!(!has_ended(strange), "{strange}");
        }
    }
}

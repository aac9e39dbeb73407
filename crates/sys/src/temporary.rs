//! Directories for files that are needed for as long as a process lives.

use std::fs::{self, DirEntry, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use nix::unistd::geteuid;
use tempfile::TempDir;

use crate::identity;

/// Begins the names of all of them; the purpose and the process follow.
const PREFIX: &str = "plumbline-";

/// An empty directory of this mode, under a name that nobody can foresee, gone when dropped. Those
/// for the same purpose of this user's processes that were killed go now.
pub fn directory(purpose: &str, mode: u32) -> io::Result<TempDir> {
    let prefix = format!("{PREFIX}{purpose}-");
    sweep(&std::env::temp_dir(), &prefix);
    tempfile::Builder::new()
        .prefix(&format!("{prefix}{}-", std::process::id()))
        .permissions(Permissions::from_mode(mode))
        .tempdir()
}

/// Removes the directories of this user whose processes are gone. What cannot be removed
/// is somebody else's, or stays for the next time.
fn sweep(within: &Path, prefix: &str) {
    let is_gone = |entry: &DirEntry| {
        let name = entry.file_name();
        let of = name.to_str()?.strip_prefix(prefix)?.split_once('-')?.0;
        let process = of.parse().ok().filter(|it| *it > 0)?;
        let is_ours = entry.metadata().ok()?.uid() == geteuid().as_raw();
        Some(is_ours && identity::is_free(process))
    };
    let Ok(entries) = fs::read_dir(within) else {
        return;
    };
    for entry in entries.flatten().filter(|it| is_gone(it) == Some(true)) {
        let _ = fs::remove_dir_all(entry.path());
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn what_a_killed_process_left_goes_with_the_next_one() {
        let within = tempfile::tempdir().unwrap();
        let at = |name: &str| within.path().join(name);
        let mut gone = Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        let left = format!("plumbline-keys-{}-Ab3dEf", gone.id());
        let own = format!("plumbline-keys-{}-Ab3dEf", std::process::id());
        let another = format!("plumbline-else-{}-Ab3dEf", gone.id());
        let others = [&another, "plumbline-keys-x-1", "plumbline-keys-0-1", "else"];
        for name in [&left, &own].into_iter().map(String::as_str).chain(others) {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("file"), "keys").unwrap();
        }
        sweep(within.path(), "plumbline-keys-");
        assert!(!at(&left).exists());
        assert!(at(&own).exists() && others.iter().all(|name| at(name).exists()));
    }

    #[test]
    fn only_who_may_can_read_it_and_it_goes_with_its_value() {
        let directory = directory("test", 0o700).unwrap();
        let path = directory.path().to_owned();
        let mode = fs::metadata(&path).unwrap().mode();
        assert_eq!(mode & 0o777, 0o700);
        drop(directory);
        assert!(!path.exists());
    }
}

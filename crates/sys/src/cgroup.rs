//! Where the cgroup of this process is.

use std::path::{Path, PathBuf};

/// The directory of the cgroup of version 2 (cgroups(7)) that this process is in; `None` where
/// that version is not mounted.
pub fn own() -> Option<PathBuf> {
    let read = |file| std::fs::read_to_string(file).unwrap_or_default();
    of(&read("/proc/self/cgroup"), &read("/proc/self/mounts"))
}

/// The directory of a process's cgroup of version 2, by what /proc says of the process
/// and of mounts.
pub(crate) fn of(groups: &str, mounts: &str) -> Option<PathBuf> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mounted = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (at, kind) = (words.next()?, words.next()?);
        (kind == "cgroup2").then_some(at)
    })?;
    Some(Path::new(mounted).join(own.trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cgroup_is_found_where_version_2_is_mounted() {
        let groups = "4:memory:/a\n0::/user.slice/b\n";
        let mounts = "proc /proc proc rw 0 0\n\
                      cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n";
        let found = of(groups, mounts).expect("found");
        assert_eq!(found, Path::new("/sys/fs/cgroup/unified/user.slice/b"));
        let root = of("0::/\n", mounts).expect("found");
        assert_eq!(root, Path::new("/sys/fs/cgroup/unified"));
        assert_eq!(of("4:memory:/a\n", mounts), None);
        assert_eq!(of(groups, "proc /proc proc rw 0 0\n"), None);
    }
}

//! The files of a machine.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;

/// The files of a machine, named as on the machine itself: those of this one, or a copy
/// below a directory.
#[derive(Clone, Debug)]
pub struct Root {
    directory: PathBuf,
    step: fn(),
}

impl Root {
    /// This machine.
    pub fn of_this_machine() -> Self {
        Self::at("/")
    }

    /// A copy of a machine's `/proc`, `/sys` and `/run` in this directory.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            step: || {},
        }
    }

    /// Calls this after each change of a file, so that a test can end the process there.
    #[must_use]
    pub fn with_step(mut self, step: fn()) -> Self {
        self.step = step;
        self
    }

    pub(crate) fn is_this_machine(&self) -> bool {
        self.directory.as_os_str() == "/"
    }

    /// Where a file is.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name.trim_start_matches('/'))
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// What a file holds, without the line's end.
    pub(crate) fn read(&self, name: &str) -> io::Result<String> {
        let text = fs::read_to_string(self.path(name))?;
        Ok(text.trim_end().to_owned())
    }

    /// Writes a value by one call, as the kernel wants it; makes no file.
    pub(crate) fn write(&self, name: &str, value: &str) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).truncate(true).open(self.path(name))?;
        file.write_all(value.as_bytes())?;
        self.stepped();
        Ok(())
    }

    /// A file was changed.
    pub(crate) fn stepped(&self) {
        (self.step)();
    }

    /// The files of this pattern, in which `*` stands for any part of a name; `cpu2` comes
    /// before `cpu10`.
    pub(crate) fn matching(&self, pattern: &str) -> Vec<String> {
        let mut found = vec![String::new()];
        for part in pattern.split('/').filter(|part| !part.is_empty()) {
            let Some((head, tail)) = part.split_once('*') else {
                found
                    .iter_mut()
                    .for_each(|name| *name += &format!("/{part}"));
                continue;
            };
            let below = |name: &String| {
                let mut inside = self.entries(name);
                let fits = |it: &String| {
                    it.len() >= head.len() + tail.len()
                        && it.starts_with(head)
                        && it.ends_with(tail)
                };
                inside.retain(fits);
                let full = inside.iter().map(|it| format!("{name}/{it}"));
                full.collect::<Vec<_>>()
            };
            found = found.iter().flat_map(below).collect();
        }
        found.retain(|name| self.exists(name));
        found
    }

    /// The names in a directory, shorter ones first; none where it cannot be read.
    fn entries(&self, name: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(name))
            .into_iter()
            .flatten()
            .flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.collect();
        names.sort_by_cached_key(|name| (name.len(), name.clone()));
        names
    }
}

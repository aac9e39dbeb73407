//! Files that appear whole or not at all.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use super::RunDirectoryError;
use super::error::Cause as _;

/// Writes a file so that a reader, and a crash at any moment, finds either the
/// whole new content or what was there before.
///
/// # Errors
///
/// [`RunDirectoryError::Full`] or [`RunDirectoryError::Io`]; nothing is left
/// half-made.
pub fn write_atomically(path: &Path, content: &[u8]) -> Result<(), RunDirectoryError> {
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.partial", std::process::id()));
    let partial = directory.join(name);
    let written = File::create(&partial)
        .and_then(|mut file| {
            file.write_all(content)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&partial, path));
    if written.is_err() {
        // Best effort: the error that matters is on its way already.
        let _ = fs::remove_file(&partial);
    }
    written.because("write", path)?;
    sync_directory(directory)
}

/// Makes the names in a directory survive a crash.
pub(super) fn sync_directory(path: &Path) -> Result<(), RunDirectoryError> {
    File::open(path)
        .and_then(|directory| directory.sync_all())
        .because("write", path)
}

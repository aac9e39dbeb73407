//! Network sysctls of a namespace.

use std::io;
use std::path::PathBuf;

use crate::namespace::{Namespace, NamespaceError};

/// A sysctl that could not be read or set.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum SysctlError {
    /// The file of the sysctl.
    #[error("cannot {action} sysctl `{key}`: {source}; {}", remedy(source))]
    File {
        action: &'static str,
        key: String,
        source: io::Error,
    },
    /// The namespace could not be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
}

impl SysctlError {
    /// Whether the kernel has no such sysctl.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::File { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

fn remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::NotFound => "this kernel, or this namespace, lacks the feature",
        io::ErrorKind::ReadOnlyFilesystem => {
            "/proc/sys is mounted read-only, as containers do; run outside of the container"
        }
        _ => "is /proc of this machine mounted?",
    }
}

/// Sets network sysctls in a namespace, in order, and gives their old values.
/// Stops at the first error, after restoring the ones before it.
///
/// Keys have slashes, because device names may have dots.
pub fn set(
    namespace: &Namespace,
    settings: &[(String, String)],
) -> Result<Vec<(String, String)>, SysctlError> {
    namespace.run(|| {
        let mut old = Vec::with_capacity(settings.len());
        for (key, value) in settings {
            match exchange(key, value) {
                Ok(before) => old.push((key.clone(), before)),
                Err(error) => {
                    for (key, value) in old.iter().rev() {
                        // The first error is the one to report.
                        let _ = write(key, value);
                    }
                    return Err(error);
                }
            }
        }
        Ok(old)
    })?
}

/// Reads a network sysctl of a namespace, without the line's end.
pub fn get(namespace: &Namespace, key: &str) -> Result<String, SysctlError> {
    namespace.run(|| read(key))?
}

fn exchange(key: &str, value: &str) -> Result<String, SysctlError> {
    let before = read(key)?;
    if before != value {
        write(key, value)?;
    }
    Ok(before)
}

fn read(key: &str) -> Result<String, SysctlError> {
    let text = std::fs::read_to_string(path(key)).map_err(failed("read", key))?;
    Ok(text.trim_end().to_string())
}

fn write(key: &str, value: &str) -> Result<(), SysctlError> {
    std::fs::write(path(key), value).map_err(failed("set", key))
}

fn path(key: &str) -> PathBuf {
    PathBuf::from("/proc/sys").join(key)
}

fn failed(action: &'static str, key: &str) -> impl Fn(io::Error) -> SysctlError {
    move |source| SysctlError::File {
        action,
        key: key.into(),
        source,
    }
}

//! Where the kernel and its modules are.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::error::UmlError;

/// User-mode Linux as Debian's packages `user-mode-linux` and `kmod` install it.
#[derive(Clone, Debug)]
pub struct Installation {
    /// The kernel.
    pub kernel: PathBuf,
    /// The directory that has a directory of modules per kernel release.
    pub modules: PathBuf,
    /// The program that loads them.
    pub modprobe: PathBuf,
    /// The kernel's release, such as `6.1.176`.
    pub release: String,
}

const MODULES: &str = "/usr/lib/uml/modules";

impl Installation {
    /// Finds it, or says what is missing.
    pub fn find() -> Result<Self, UmlError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let kernel = program("linux.uml", &path)?;
        let modprobe = program("modprobe", &path)?;
        let modules = PathBuf::from(MODULES);
        let release = release(&modules).ok_or_else(|| UmlError::NotInstalled {
            missing: format!("the directory {MODULES}"),
        })?;
        Ok(Self {
            kernel,
            modules,
            modprobe,
            release,
        })
    }
}

/// The program of this name, on the path or where the system keeps its own,
/// which an ordinary user's path may lack.
fn program(name: &str, path: &OsStr) -> Result<PathBuf, UmlError> {
    let system = ["/usr/bin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(path)
        .chain(system)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|file| file.is_file())
        .ok_or_else(|| UmlError::NotInstalled {
            missing: format!("the program `{name}`"),
        })
}

/// The newest release that has modules.
fn release(modules: &Path) -> Option<String> {
    let entries = std::fs::read_dir(modules).ok()?;
    let names = entries
        .flatten()
        .filter(|entry| entry.path().join("modules.dep").exists());
    names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_the_packages() {
        let error = program("no-such-program", OsStr::new("/usr/bin"))
            .expect_err("missing")
            .to_string();
        assert!(
            error.contains("`no-such-program`") && error.contains("user-mode-linux kmod"),
            "{error}"
        );
    }

    #[test]
    fn a_directory_without_modules_has_no_release() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(release(directory.path()), None);
        std::fs::create_dir(directory.path().join("6.1.0")).unwrap();
        assert_eq!(release(directory.path()), None);
        std::fs::write(directory.path().join("6.1.0/modules.dep"), "").unwrap();
        assert_eq!(release(directory.path()), Some("6.1.0".into()));
    }
}

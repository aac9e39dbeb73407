//! What the first process inside has to do: a file next to its name.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Name of the file.
pub(crate) const FILE: &str = "job";
/// Name by which the program is started as the first process.
pub(crate) const INIT: &str = "init";

/// Lines to the outside: standard output, standard error, and one by which both
/// sides signal each other.
pub(crate) const OUTPUT: &str = "/dev/ttyS0";
pub(crate) const ERRORS: &str = "/dev/ttyS1";
pub(crate) const CONTROL: &str = "/dev/ttyS2";

/// Bytes on the control line: inside to outside, everything is set up; outside to
/// inside, interrupt the command.
pub(crate) const READY: u8 = b'r';
pub(crate) const INTERRUPT: u8 = 3;

/// The kernel's own exit codes are small. Those above this are the command's.
pub(crate) const CODE_BASE: u8 = 100;

/// Rows and columns, where a stream is a terminal.
pub(crate) type Terminal = Option<(u16, u16)>;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    /// Arguments of the command, without the program.
    pub(crate) arguments: Vec<OsString>,
    pub(crate) directory: PathBuf,
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// The directory that it may write to; it exists.
    pub(crate) writable: Option<PathBuf>,
    pub(crate) output: Terminal,
    pub(crate) errors: Terminal,
    /// Both streams lead to the same place, where their order is seen.
    pub(crate) together: bool,
    pub(crate) modules: PathBuf,
    pub(crate) modprobe: PathBuf,
}

impl Job {
    pub(crate) fn write(&self, directory: &Path) -> std::io::Result<()> {
        std::fs::write(directory.join(FILE), serde_json::to_vec(self)?)
    }

    pub(crate) fn read(directory: &Path) -> std::io::Result<Self> {
        Ok(serde_json::from_slice(&std::fs::read(
            directory.join(FILE),
        )?)?)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    #[test]
    fn arguments_need_not_be_text() {
        let directory = tempfile::tempdir().unwrap();
        let odd = OsString::from_vec(vec![b'a', 0xff, b'b']);
        let job = Job {
            arguments: vec![odd.clone()],
            directory: "/".into(),
            environment: vec![("A".into(), odd.clone())],
            writable: None,
            output: Some((24, 80)),
            errors: None,
            together: true,
            modules: "/m".into(),
            modprobe: "/p".into(),
        };
        job.write(directory.path()).unwrap();
        let back = Job::read(directory.path()).unwrap();
        assert_eq!(back.arguments, std::slice::from_ref(&odd));
        assert_eq!(back.environment[0].1, odd);
        assert_eq!(back.output, Some((24, 80)));
        assert!(back.together);
    }
}

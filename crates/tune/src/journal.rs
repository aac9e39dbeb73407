//! What is set, on disk before it is set.
//!
//! Everybody may read it, so that a run by an ordinary user can say that the machine was
//! tuned, and so can everybody read the same values in `/proc` and `/sys`. Only its owner
//! may write it or beside it, because by it root writes files.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use crate::error::{Because as _, TuneError};
use crate::proposal::Adjustment;
use crate::root::Root;

const DIRECTORY: &str = "/run/plumbline";
const JOURNAL: &str = "/run/plumbline/tune.journal";
const UNFINISHED: &str = "/run/plumbline/tune.journal.new";
const LOCK: &str = "/run/plumbline/tune.lock";
/// The kernel draws it at each start. Not every `/run` is empty then, but settings are gone.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

#[derive(Debug, Serialize, Deserialize)]
struct Content {
    boot: String,
    adjustments: Vec<Adjustment>,
}

/// The journal of a machine, in the hands of one process.
#[derive(Debug)]
pub(crate) struct TuneJournal<'a> {
    root: &'a Root,
    _owner: Flock<File>,
}

impl<'a> TuneJournal<'a> {
    /// Takes it for as long as this lives.
    pub(crate) fn take(root: &'a Root) -> Result<Self, TuneError> {
        let directory = root.path(DIRECTORY);
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o755).create(&directory);
        made.because("make", &directory)?;
        check_owner(&directory)?;
        let path = root.path(LOCK);
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&path).because("open", &path)?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(owner) => Ok(Self {
                root,
                _owner: owner,
            }),
            Err((_, Errno::EWOULDBLOCK)) => Err(TuneError::InUse),
            Err((_, errno)) => Err(errno).because("lock", path),
        }
    }

    /// What was set and not put back, by a process that did not come to that.
    pub(crate) fn left(&self) -> Result<Vec<Adjustment>, TuneError> {
        let path = self.root.path(JOURNAL);
        if path.exists() {
            check_owner(&path)?;
        }
        read(self.root)
    }

    /// Writes down what is going to be set. When this returns it is on disk, at one stroke.
    pub(crate) fn begin(&self, adjustments: &[Adjustment]) -> Result<(), TuneError> {
        let boot = self.root.read(BOOT);
        let content = Content {
            boot: boot.because("read", self.root.path(BOOT))?,
            adjustments: adjustments.to_vec(),
        };
        let unfinished = self.root.path(UNFINISHED);
        self.write(&unfinished, &content)
            .because("write", &unfinished)?;
        let path = self.root.path(JOURNAL);
        fs::rename(&unfinished, &path).because("write", &path)?;
        self.root.stepped();
        self.sync()
    }

    fn write(&self, path: &Path, content: &Content) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o644);
        let mut file = options.open(path)?;
        self.root.stepped();
        file.write_all(&serde_json::to_vec(content)?)?;
        self.root.stepped();
        file.sync_all()
    }

    /// Forgets what was set: it is put back.
    pub(crate) fn end(&self) -> Result<(), TuneError> {
        for name in [JOURNAL, UNFINISHED] {
            let path = self.root.path(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                removed => removed.because("remove", &path)?,
            }
            self.root.stepped();
        }
        self.sync()
    }

    fn sync(&self) -> Result<(), TuneError> {
        let directory = self.root.path(DIRECTORY);
        let synced = File::open(&directory).and_then(|it| it.sync_all());
        synced.because("write", directory)
    }
}

/// Whatever says what root writes has to be from the same user, and from no other.
fn check_owner(path: &Path) -> Result<(), TuneError> {
    let found = fs::metadata(path).because("look at", path)?;
    let is_own = found.uid() == nix::unistd::geteuid().as_raw() && found.mode() & 0o022 == 0;
    if is_own {
        return Ok(());
    }
    Err(TuneError::Foreign {
        path: path.to_owned(),
    })
}

/// What was set since the machine was started, and not put back.
pub(crate) fn read(root: &Root) -> Result<Vec<Adjustment>, TuneError> {
    let path = root.path(JOURNAL);
    let text = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.because("read", &path)?,
    };
    let content: Content =
        serde_json::from_slice(&text).map_err(|source| TuneError::Unreadable { path, source })?;
    let is_of_this_boot = root.read(BOOT).is_ok_and(|boot| boot == content.boot);
    Ok(if is_of_this_boot {
        content.adjustments
    } else {
        Vec::new()
    })
}

/// The names of what is tuned on a machine at this moment, by whatever process. What cannot
/// be looked at, as from another network namespace, is taken to be as it was set.
pub fn standing(root: &Root) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    // A journal that cannot be read tells nothing of the machine.
    for one in read(root).unwrap_or_default() {
        let stands = root.read(&one.file).map_or(true, |now| now == one.set);
        if stands && !names.contains(&one.tunable) {
            names.push(one.tunable);
        }
    }
    names
}

//! Files that appear whole or not at all, wherever a user asked for them.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use nix::errno::Errno;

/// Links that are followed before they are taken for a circle, as the kernel does.
const MAX_LINKS: u32 = 40;
/// What a new file may be used for; the user's umask takes away from it.
const MODE: u32 = 0o666;

/// Why a file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}; check that the directory exists, that it has room, and that you may write there", path.display())]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// What the kernel said.
    pub source: io::Error,
}

/// Writes a file so that a reader, and a crash at any moment, finds either the
/// whole new content or what was there before.
///
/// Where `path` is a symbolic link, the file that it leads to is written, and
/// the link stays. What is no regular file (a device, a pipe, or an open file
/// by a name such as `/dev/stdout`) is written to and never replaced; that
/// cannot be done at one stroke.
///
/// # Errors
///
/// What the system refuses; nothing is left half-made beside the file.
pub fn write_atomically(path: &Path, content: &[u8]) -> Result<(), WriteError> {
    write(path, content).map_err(|source| WriteError {
        path: path.to_owned(),
        source,
    })
}

fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let path = end_of_links(path)?;
    match fs::metadata(&path) {
        Ok(found) if !found.is_file() || is_open_file(&path) => {
            let mut file = OpenOptions::new().append(true).open(&path)?;
            file.write_all(content)
        }
        Ok(found) => replace(&path, content, Some(found.permissions())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => replace(&path, content, None),
        Err(error) => Err(error),
    }
}

/// Puts a new file in the place of one that is there or not.
fn replace(path: &Path, content: &[u8], permissions: Option<Permissions>) -> io::Result<()> {
    let directory = directory_of(path);
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    let mut file = tempfile::Builder::new()
        .prefix(&name)
        .suffix(".partial")
        .permissions(Permissions::from_mode(MODE))
        .tempfile_in(directory)?;
    // Of the file itself: what the wrapper makes of an error has lost its number.
    file.as_file_mut().write_all(content)?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    sync_directory(directory)
}

/// Where a chain of symbolic links ends. There need not be a file.
fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    let mut end = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Some(name) = end.file_name() else {
            return Ok(end);
        };
        end = fs::canonicalize(directory_of(&end))?.join(name);
        // What the links of an open file say need not be its path.
        if is_open_file(&end) || !end.is_symlink() {
            return Ok(end);
        }
        end = directory_of(&end).join(fs::read_link(&end)?);
    }
    Err(Errno::ELOOP.into())
}

/// Whether a path names what some process has open, as `/dev/stdout` does.
fn is_open_file(path: &Path) -> bool {
    path.starts_with("/proc")
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Makes the names in a directory survive a crash.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt as _, symlink};

    use nix::sys::stat::Mode;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn a_file_is_replaced_and_keeps_its_mode() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("page");
        write_atomically(&path, b"first").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let mut reader = File::open(&path).unwrap();
        write_atomically(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o640
        );
        let mut seen = String::new();
        io::Read::read_to_string(&mut reader, &mut seen).unwrap();
        assert_eq!(seen, "first", "a reader sees the whole old file");
        assert_eq!(names(directory.path()), ["page"]);
    }

    #[test]
    fn a_link_stays_and_what_it_leads_to_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("kept")).unwrap();
        fs::write(at("kept/page"), "before").unwrap();
        symlink("kept/page", at("near")).unwrap();
        symlink(at("near"), at("far")).unwrap();
        symlink("kept/later", at("dangling")).unwrap();
        write_atomically(&at("far"), b"after").unwrap();
        write_atomically(&at("dangling"), b"new").unwrap();
        assert_eq!(fs::read(at("kept/page")).unwrap(), b"after");
        assert_eq!(fs::read(at("kept/later")).unwrap(), b"new");
        for link in ["near", "far", "dangling"] {
            assert!(at(link).is_symlink(), "{link}");
        }
        assert_eq!(names(&at("kept")), ["later", "page"]);
    }

    #[test]
    fn a_circle_of_links_and_a_directory_are_errors() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        symlink("two", at("one")).unwrap();
        symlink("one", at("two")).unwrap();
        for path in [at("one"), directory.path().to_owned(), at("none/page")] {
            let error = write_atomically(&path, b"x").unwrap_err();
            assert!(error.to_string().contains("cannot write "), "{error}");
        }
        assert_eq!(names(directory.path()), ["one", "two"]);
    }

    #[test]
    fn a_pipe_is_written_to() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        nix::unistd::mkfifo(&path, Mode::from_bits_truncate(0o600)).unwrap();
        let reader = std::thread::spawn({
            let path = path.clone();
            move || fs::read(path).unwrap()
        });
        write_atomically(&path, b"through").unwrap();
        assert_eq!(reader.join().unwrap(), b"through");
        assert!(fs::symlink_metadata(&path).unwrap().file_type().is_fifo());
        assert_eq!(names(directory.path()), ["pipe"]);
    }

    #[test]
    fn a_device_is_written_to() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("null");
        symlink("/dev/null", &link).unwrap();
        for path in [&link, Path::new("/dev/null")] {
            write_atomically(path, b"gone").unwrap();
        }
        let null = fs::symlink_metadata("/dev/null").unwrap();
        assert!(null.file_type().is_char_device());
        assert!(link.is_symlink());
    }

    #[test]
    fn an_open_file_is_added_to_by_its_number() {
        use std::os::fd::AsRawFd as _;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        fs::write(&path, "before, ").unwrap();
        let open = File::open(&path).unwrap();
        let by_number = format!("/dev/fd/{}", open.as_raw_fd());
        write_atomically(Path::new(&by_number), b"after").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"before, after");
    }
}

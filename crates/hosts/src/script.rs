//! The script that the shell of a host runs.

use plumbline_harness::quoted;

/// Makes a private directory, takes the program from standard input into it,
/// runs it as agent with what follows on standard input, and removes the
/// directory, however that ends: the program ends by itself when its input
/// closes or falls silent, so a cut connection ends here too. The arguments are
/// where to make the directory (empty for the usual place) and the number of
/// bytes of the program.
///
/// Without a single quote or exclamation mark, which some login shells would
/// not pass on.
const INSTALL: &str = r#"umask 077
parent=${1:-${TMPDIR:-/tmp}}
dir=$(mktemp -d "$parent/plumbline.XXXXXXXXXX") || exit 71
clean() { rm -rf -- "$dir"; }
trap clean EXIT
trap "exit 79" HUP INT TERM PIPE
echo "plumbline-at $(uname -s) $(uname -m) $dir ${SSH_CONNECTION:-}"
head -c "$2" > "$dir/plumbline" || exit 72
test "$(wc -c < "$dir/plumbline")" -eq "$2" || exit 73
chmod 700 "$dir/plumbline" || exit 72
"$dir/plumbline" --version > /dev/null || exit 74
echo plumbline-copied
"$dir/plumbline" agent"#;

/// Exit codes of [`INSTALL`].
pub(crate) const NO_DIRECTORY: i32 = 71;
pub(crate) const NOT_WRITTEN: i32 = 72;
pub(crate) const CUT_OFF: i32 = 73;
pub(crate) const NOT_RUN: i32 = 74;

/// Begins the line that says where the program goes.
pub(crate) const AT: &str = "plumbline-at ";
/// The line that says that it is there and runs.
pub(crate) const COPIED: &str = "plumbline-copied";

/// The command for ssh that installs a program of `size` bytes and runs it.
pub(crate) fn install(directory: &str, size: u64) -> String {
    format!(
        "exec /bin/sh -c {} plumbline {} {size}",
        quoted(INSTALL),
        quoted(directory)
    )
}

/// The command for ssh that runs an installed program.
pub(crate) fn agent(directory: &str) -> String {
    format!("exec {} agent", quoted(&format!("{directory}/plumbline")))
}

/// What the first line of [`INSTALL`] says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) system: String,
    pub(crate) machine: String,
    pub(crate) directory: String,
    /// The address that ssh connected to.
    pub(crate) connected: Option<std::net::IpAddr>,
}

impl At {
    /// Reads it; `None` when it is another line.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let rest = line.trim_end().strip_prefix(AT)?;
        let (system, rest) = rest.split_once(' ')?;
        let (machine, rest) = rest.split_once(' ')?;
        // The directory may hold spaces, the four words of SSH_CONNECTION do not.
        let words: Vec<&str> = rest.rsplitn(5, ' ').collect();
        let ports = |port: &str| port.parse::<u16>().is_ok();
        let (directory, connected) = match words[..] {
            [to_port, to, from_port, _, directory] if ports(to_port) && ports(from_port) => {
                (directory, to.parse().ok())
            }
            _ => (rest.trim_end(), None),
        };
        Some(Self {
            system: system.to_owned(),
            machine: machine.to_owned(),
            directory: directory.to_owned(),
            connected,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_survives_any_login_shell() {
        assert!(!INSTALL.contains(['\'', '!']));
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }

    #[test]
    fn the_first_line_is_understood() {
        let line = "plumbline-at Linux x86_64 /tmp/my dir/plumbline.x 10.0.0.1 4022 10.0.0.2 22\n";
        let at = At::parse(line).unwrap();
        assert_eq!(at.directory, "/tmp/my dir/plumbline.x");
        assert_eq!(at.machine, "x86_64");
        assert_eq!(at.connected, Some([10, 0, 0, 2].into()));
        let bare = At::parse("plumbline-at Linux aarch64 /tmp/plumbline.x \n").unwrap();
        assert_eq!(bare.directory, "/tmp/plumbline.x");
        assert_eq!(bare.connected, None);
        assert_eq!(At::parse("Welcome to this machine\n"), None);
    }
}

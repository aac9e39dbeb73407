//! Being `kubectl plumbline`: kubectl runs the program `kubectl-plumbline` for
//! it, with everything that follows as arguments.

use std::ffi::OsStr;
use std::path::Path;

/// The file name by which kubectl finds a plugin.
const PLUGIN: &str = "kubectl-plumbline";

/// Whether this program was started as a kubectl plugin.
pub(crate) fn is_plugin() -> bool {
    std::env::args_os()
        .next()
        .is_some_and(|program| is_name_of_plugin(&program))
}

/// The command that starts this program.
pub(crate) fn typed() -> &'static str {
    if is_plugin() {
        "kubectl plumbline"
    } else {
        "plumbline"
    }
}

fn is_name_of_plugin(program: &OsStr) -> bool {
    Path::new(program).file_name() == Some(OsStr::new(PLUGIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_name_makes_the_plugin() {
        for plugin in ["kubectl-plumbline", "/home/a/.krew/bin/kubectl-plumbline"] {
            assert!(is_name_of_plugin(plugin.as_ref()), "{plugin}");
        }
        for other in ["plumbline", "/kubectl-plumbline/plumbline", "kubectl", ""] {
            assert!(!is_name_of_plugin(other.as_ref()), "{other}");
        }
    }
}

//! What a command hands over that brought a cluster up.

use std::fs;
use std::path::{Path, PathBuf};

/// The lines of standard output that mean something.
const CONFIGURATION: &str = "KUBECONFIG=";
const DOWN: &str = "UNPROVISION=";
const MADE_FOR_RUN: &str = "MADE_FOR_RUN=";

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HandedOver {
    /// How to reach the cluster, or a sentence on why that is not known.
    pub(crate) kubeconfig: Result<PathBuf, String>,
    /// The command that takes it down, where the one that brought it up knows.
    pub(crate) down: Option<String>,
    /// Whether only this run uses the cluster, so that pods may be in its nodes' networks.
    pub(crate) made_for_run: bool,
}

/// Reads what a command printed, and looks for the file that it should have written,
/// `told`. A line `KUBECONFIG=FILE` outranks that file.
pub(crate) fn read(said: &str, told: &Path) -> HandedOver {
    let last = |key: &str| {
        let values = said.lines().filter_map(|line| line.strip_prefix(key));
        values.map(str::trim).rfind(|it| !it.is_empty())
    };
    let has_content = |file: &Path| fs::metadata(file).is_ok_and(|it| it.len() > 0);
    let kubeconfig = match last(CONFIGURATION) {
        Some(file) if has_content(Path::new(file)) => Ok(file.into()),
        Some(file) => Err(format!(
            "it printed KUBECONFIG={file}, but there is no such file"
        )),
        None if has_content(told) => Ok(told.to_owned()),
        None => Err(
            "it succeeded, but did not say how to reach the cluster: it has to write the \
             file that KUBECONFIG names in its environment, or to print a line KUBECONFIG=FILE"
                .to_owned(),
        ),
    };
    HandedOver {
        kubeconfig,
        down: last(DOWN).map(str::to_owned),
        made_for_run: last(MADE_FOR_RUN) == Some("yes"),
    }
}

/// What fuzzing holds of [`read`]; gives what was handed over. (It compiles this file without the
/// crate: what talks to clusters takes minutes.)
///
/// # Panics
///
/// When a file is given that is none, or a command that was not printed.
#[cfg(any(test, fuzzing))]
pub(crate) fn hold(said: &str) -> Vec<&'static str> {
    let handed = read(said, Path::new("/nonexistent"));
    let mut found = Vec::new();
    match handed.kubeconfig {
        Ok(file) => {
            assert!(file.exists(), "{}", file.display());
            found.push("kubeconfig");
        }
        Err(why) => assert!(!why.is_empty()),
    }
    if let Some(down) = handed.down {
        assert!(!down.is_empty() && said.contains(&down), "{down}");
        found.push("down");
    }
    if handed.made_for_run {
        assert!(said.contains("MADE_FOR_RUN="));
        found.push("made for the run");
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds::seed;

    #[test]
    fn the_file_is_the_one_that_was_printed_or_else_the_one_that_was_told() {
        // Cargo.toml is a file with content wherever this runs.
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let nowhere = Path::new("/nonexistent/kubeconfig");
        let said = format!(
            "creating …\nKUBECONFIG={}\nUNPROVISION=kind delete cluster\n",
            file.display()
        );
        let handed = read(&said, nowhere);
        assert_eq!(handed.kubeconfig, Ok(file.clone()));
        assert_eq!(handed.down.as_deref(), Some("kind delete cluster"));

        let handed = read("no such line\n", &file);
        assert_eq!((handed.kubeconfig, handed.down), (Ok(file.clone()), None));

        let reason = |said, told| read(said, told).kubeconfig.unwrap_err();
        assert!(reason("", nowhere).contains("KUBECONFIG"));
        let gone = reason("KUBECONFIG=/nonexistent/x\n", &file);
        assert!(gone.contains("/nonexistent/x"), "{gone}");
    }

    #[test]
    fn only_a_yes_says_that_a_cluster_was_made_for_the_run() {
        let made_for_run = |said| read(said, Path::new("/nonexistent")).made_for_run;
        assert!(made_for_run("MADE_FOR_RUN=yes\n"));
        for other in ["", "MADE_FOR_RUN=\n", "MADE_FOR_RUN=no\n", "made for run\n"] {
            assert!(!made_for_run(other), "{other}");
        }
    }

    #[test]
    fn everything_that_is_handed_over_is_in_a_seed() {
        let seeds: [(&str, &[&str]); 3] = [
            ("lines", &["kubeconfig", "down", "made for the run"]),
            ("none", &[]),
            ("first-line-of-a-host", &[]),
        ];
        for (name, expected) in seeds {
            let said = String::from_utf8(seed(&format!("handed_over/{name}"))).unwrap();
            assert_eq!(hold(&said), expected, "{name}");
        }
    }
}

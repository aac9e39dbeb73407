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

#[cfg(test)]
mod tests {
    use super::*;

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
}

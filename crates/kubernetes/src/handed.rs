//! What a command hands over that brought a cluster up.

use std::fs;
use std::path::{Path, PathBuf};

/// The lines of standard output that mean something.
const CONFIGURATION: &str = "KUBECONFIG=";
const DOWN: &str = "UNPROVISION=";

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HandedOver {
    pub(crate) kubeconfig: PathBuf,
    /// The command that takes it down, where the one that brought it up knows.
    pub(crate) down: Option<String>,
}

/// Reads what a command printed, and looks for the file that it should have written,
/// `told`. A line `KUBECONFIG=FILE` outranks that file.
///
/// # Errors
///
/// A sentence, when there is neither.
pub(crate) fn read(said: &str, told: &Path) -> Result<HandedOver, String> {
    let last = |key: &str| {
        let values = said.lines().filter_map(|line| line.strip_prefix(key));
        values.map(str::trim).rfind(|it| !it.is_empty())
    };
    let has_content = |file: &Path| fs::metadata(file).is_ok_and(|it| it.len() > 0);
    let kubeconfig = match last(CONFIGURATION).map(PathBuf::from) {
        Some(file) if has_content(&file) => file,
        Some(file) => {
            return Err(format!(
                "it printed KUBECONFIG={}, but there is no such file",
                file.display()
            ));
        }
        None if has_content(told) => told.to_owned(),
        None => {
            return Err(
                "it succeeded, but did not say how to reach the cluster: it has to write the \
                 file that KUBECONFIG names in its environment, or to print a line \
                 KUBECONFIG=FILE"
                    .to_owned(),
            );
        }
    };
    Ok(HandedOver {
        kubeconfig,
        down: last(DOWN).map(str::to_owned),
    })
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
        let handed = read(&said, nowhere).unwrap();
        assert_eq!(handed.kubeconfig, file);
        assert_eq!(handed.down.as_deref(), Some("kind delete cluster"));

        let handed = read("no such line\n", &file).unwrap();
        assert_eq!((handed.kubeconfig, handed.down), (file.clone(), None));

        assert!(read("", nowhere).unwrap_err().contains("KUBECONFIG"));
        let gone = read("KUBECONFIG=/nonexistent/x\n", &file).unwrap_err();
        assert!(gone.contains("/nonexistent/x"), "{gone}");
    }
}

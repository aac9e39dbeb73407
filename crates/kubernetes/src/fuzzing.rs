//! What fuzzing targets reach of this crate.

use std::path::Path;

use crate::handed;
use crate::image::{ImageError, architecture};

/// Reads what a command printed that brought a cluster up; gives what it handed over.
///
/// # Panics
///
/// When a file is given that is none, or a command that was not printed.
pub fn handed_over(said: &str) -> Vec<&'static str> {
    let handed = handed::read(said, Path::new("/nonexistent"));
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

/// Reads the header of a program that is to be packed: its architecture where it is static.
///
/// # Errors
///
/// It cannot be packed.
///
/// # Panics
///
/// When the error has no words.
pub fn program(bytes: &[u8]) -> Result<&'static str, ImageError> {
    architecture(bytes).inspect_err(|error| assert!(!error.to_string().is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds::seed;

    #[test]
    fn everything_that_is_handed_over_is_in_a_seed() {
        let seeds: [(&str, &[&str]); 3] = [
            ("lines", &["kubeconfig", "down", "made for the run"]),
            ("none", &[]),
            ("first-line-of-a-host", &[]),
        ];
        for (name, expected) in seeds {
            let said = String::from_utf8(seed(&format!("handed_over/{name}"))).unwrap();
            assert_eq!(handed_over(&said), expected, "{name}");
        }
    }

    #[test]
    fn programs_of_each_kind_are_seeds() {
        let read = |name: &str| program(&seed(&format!("elf/{name}")));
        assert_eq!(read("static").unwrap(), "amd64");
        assert_eq!(read("arm64").unwrap(), "arm64");
        let dynamic = read("dynamic").unwrap_err();
        assert!(matches!(dynamic, ImageError::Dynamic { .. }), "{dynamic}");
        let big_endian = read("big-endian").unwrap_err();
        assert!(matches!(big_endian, ImageError::Program(_)), "{big_endian}");
    }
}

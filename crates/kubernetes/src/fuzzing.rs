//! What fuzzing targets reach of this crate.

use std::path::Path;

use crate::handed;
use crate::image::architecture;

/// Reads what a command printed that brought a cluster up.
///
/// # Panics
///
/// When a file is given that is none.
pub fn handed_over(said: &str) {
    match handed::read(said, Path::new("/nonexistent")).kubeconfig {
        Ok(file) => assert!(file.exists(), "{}", file.display()),
        Err(why) => assert!(!why.is_empty()),
    }
}

/// Reads the header of a program that is to be packed.
///
/// # Panics
///
/// When the error has no words.
pub fn program(bytes: &[u8]) {
    if let Err(error) = architecture(bytes) {
        assert!(!error.to_string().is_empty());
    }
}

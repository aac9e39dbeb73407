//! What fuzzing begins with. The tests beside what it reaches have this file by its path: testkit
//! would put them into namespaces of their own.

use std::fs;
use std::path::{Path, PathBuf};

/// The directory with the seeds of some targets, or one of them.
pub(crate) fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(name)
}

/// A seed by its target and its name.
pub(crate) fn seed(name: &str) -> Vec<u8> {
    fs::read(corpus(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

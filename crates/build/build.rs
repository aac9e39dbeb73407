//! Hashes the sources that an agent is made of: two programs with one hash say and
//! measure the same, whatever machine and C library they were built for.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

/// The agent's, and those of ours that it uses.
const CRATES: [&str; 7] = [
    "agent",
    "engine",
    "experiment",
    "protocol",
    "record",
    "stats",
    "sys",
];

fn main() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let crates = here.parent().ok_or("it is not in the workspace")?;
    let mut files = vec![crates.with_file_name("Cargo.lock")];
    for name in CRATES {
        let sources = crates.join(name).join("src");
        println!("cargo::rerun-if-changed={}", sources.display());
        add(&sources, &mut files)?;
    }
    println!("cargo::rerun-if-changed={}", files[0].display());
    files.sort();
    let mut digest = Sha256::new();
    for file in files {
        digest.update(fs::read(file)?);
    }
    let bytes = digest.finalize();
    let hash: String = bytes.iter().take(6).map(|it| format!("{it:02x}")).collect();
    println!("cargo::rustc-env=PLUMBLINE_SOURCES={hash}");
    Ok(())
}

/// Adds all files below a directory.
fn add(directory: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            add(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

//! Faults that a library plants into the program under test.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::world::{self, plumbline, short_run, stderr};

/// Four blocks of the host and a network, which take some seconds.
pub(super) const RUN: &[&str] = &short_run("routed", "4");
pub(super) const TRIALS: usize = 8;

/// `planted.c`, which says what it plants, compiled.
pub(super) struct Library(tempfile::TempDir);

impl Library {
    /// `None`, and a counted skip, without a C compiler.
    pub(super) fn compile(test: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let compiled = Command::new("cc")
            .args(["-Wall", "-Werror", "-O2", "-shared", "-fPIC", "-o"])
            .arg(directory.path().join("planted.so"))
            .args(["tests/faults/planted.c", "-ldl"])
            .output();
        let compiled = match compiled {
            Ok(compiled) => compiled,
            Err(error) => {
                world::skip(test, &format!("`cc`: {error}"));
                return None;
            }
        };
        assert!(compiled.status.success(), "{}", stderr(&compiled));
        Some(Self(directory))
    }

    pub(super) fn path(&self) -> PathBuf {
        self.0.path().join("planted.so")
    }

    /// The run with a fault, at its end.
    pub(super) fn output(&self, out: &Path, fault: &str, order: &str) -> Output {
        let output = plumbline(RUN)
            .arg(out)
            .env("LD_PRELOAD", self.path())
            .env(fault, order)
            .output();
        output.expect("the program starts")
    }
}

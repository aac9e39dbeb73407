//! The script that made the cluster, for tests that do something to its machines.

use std::process::Command;

use crate::world::{skip, stderr, stdout};

/// `tests/kubelab`, where it made the cluster.
pub(super) struct Kubelab(String);

impl Kubelab {
    /// `None`, and a counted skip that says what is missing, where the cluster is not ours.
    pub(super) fn of_cluster(missing: &str) -> Option<Self> {
        let named = std::env::var("PLUMBLINE_TEST_KUBELAB");
        if named.is_err() {
            skip(
                "cluster",
                &format!("PLUMBLINE_TEST_KUBELAB names {missing}"),
            );
        }
        named.ok().map(Self)
    }

    /// Does something to the cluster. What it starts may keep its output open, so that is not
    /// read.
    #[track_caller]
    pub(super) fn order(&self, words: &[&str]) {
        let status = Command::new(&self.0).args(words).status();
        assert!(status.expect("kubelab is there").success(), "{words:?}");
    }

    /// The line of a shell that does it.
    pub(super) fn command(&self, words: &str) -> String {
        format!("{} {words}", self.0)
    }

    /// What a command prints on a node.
    #[track_caller]
    pub(super) fn exec(&self, node: &str, command: &[&str]) -> String {
        let mut kubelab = Command::new(&self.0);
        let output = kubelab.args(["exec", node]).args(command).output();
        let output = output.expect("kubelab is there");
        assert!(output.status.success(), "{command:?}: {}", stderr(&output));
        stdout(&output)
    }
}

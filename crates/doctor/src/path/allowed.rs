//! What a user allows beside looking.

use clap::Args;
use plumbline_harness::quoted;

/// What may be done on a path beside looking.
#[derive(Clone, Debug, Default, Args)]
pub struct PathTrials {
    /// Switch offloads on the path off for a moment, to see whether one is broken
    #[arg(id = "try_offloads", long = "try-offloads", requires = "path")]
    pub offloads: bool,
    /// Run the commands of remedies and look whether what they are for is gone, in a lab
    #[arg(id = "try_remedies", long = "try-remedies", requires = "path")]
    pub remedies: bool,
    /// In a cluster, make a pod on each node that may load programs into the node's kernel, which
    /// see what it drops
    #[arg(id = "allow_tracing", long = "allow-tracing", requires = "path")]
    pub tracing: bool,
    /// Whether the path is of this machine's own kernel: then, as root, a program in it sees what
    /// it drops, and the maps of its programs are counted.
    #[arg(skip)]
    pub of_this_kernel: bool,
    /// The words that were typed behind the program's name, for remedies to name.
    #[arg(skip)]
    pub typed: Vec<String>,
}

impl PathTrials {
    /// The command as a shell takes it.
    pub(super) fn command(&self) -> String {
        let is_bare = |it: char| it.is_ascii_alphanumeric() || "_-+=:,./@%".contains(it);
        let written = |word: &String| match !word.is_empty() && word.chars().all(is_bare) {
            true => word.clone(),
            false => quoted(word),
        };
        let words = self.typed.iter().map(written);
        let all: Vec<String> = std::iter::once("plumbline".to_owned())
            .chain(words)
            .collect();
        all.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_was_typed_can_be_given_to_a_shell() {
        let typed = ["doctor", "--path", "cni:my own's.conflist"];
        let trials = PathTrials {
            typed: typed.map(str::to_owned).into(),
            ..PathTrials::default()
        };
        let expected = r"plumbline doctor --path 'cni:my own'\''s.conflist'";
        assert_eq!(trials.command(), expected);
    }
}

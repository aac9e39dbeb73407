//! The system's own programs that write rules into the kernel.

use std::io;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use plumbline_experiment::Family;
use plumbline_sys::process::{Command, ProcessError};
use plumbline_sys::scratch::Scratch;

use crate::error::LabError;
use crate::journal::Journal;
use crate::place::Place;

/// Longest time for one text.
const LIMIT: Duration = Duration::from_secs(120);
/// Where such programs are, whatever the user's `PATH` says: that of an ordinary user
/// often lacks them.
pub(crate) const FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// A program that reads rules from a file and writes them into the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct RuleWriter {
    pub(super) program: &'static str,
    /// What stands before the name of the file.
    pub(super) arguments: &'static [&'static str],
    /// Debian's package.
    pub(super) package: &'static str,
}

/// Why rules could not be written, where nothing is missing.
#[derive(Debug, thiserror::Error)]
enum RuleWriterError {
    #[error(
        "rules for `{program}` cannot be put into a file in memory: {source}; the machine may be \
         out of memory"
    )]
    File {
        program: &'static str,
        source: io::Error,
    },
    #[error("`{program}` did not write its rules: {source}; use fewer, or try again")]
    Program {
        program: &'static str,
        source: ProcessError,
    },
}

/// Does something on each of some nodes, at the same time.
pub(super) fn on_each(
    nodes: &[Arc<Place>],
    work: impl Fn(&Place) -> Result<(), LabError> + Sync,
) -> Result<(), LabError> {
    thread::scope(|scope| {
        let start = |node: &Arc<Place>| {
            let (node, work) = (Arc::clone(node), &work);
            scope.spawn(move || work(&node))
        };
        // All are started before the first is waited for.
        let threads: Vec<_> = nodes.iter().map(start).collect();
        let ended = threads.into_iter().map(thread::ScopedJoinHandle::join);
        let done = ended.map(|it| it.unwrap_or_else(|panic| resume_unwind(panic)));
        done.collect::<Vec<_>>().into_iter().collect()
    })
}

/// Lines of a table of `iptables` in the tables of nftables, in transactions of so many: an
/// ordinary user's messages to the kernel may be no longer than its sockets' buffers. Chains come
/// before rules.
pub(super) fn short_transactions(table: &str, lines: &[&str], piece: usize) -> String {
    lines
        .chunks(piece)
        .map(|it| transaction(table, it))
        .collect()
}

/// Lines of a table of `iptables`.
pub(super) fn transaction(table: &str, lines: &[&str]) -> String {
    format!("*{table}\n{}\nCOMMIT\n", lines.join("\n"))
}

/// What a table of a family is called in `nft`.
pub(super) fn family_of_table(family: Family) -> &'static str {
    match family {
        Family::V4 => "ip",
        Family::V6 => "ip6",
    }
}

impl RuleWriter {
    pub(super) const NFT: Self = Self {
        program: "nft",
        arguments: &["-f"],
        package: "nftables",
    };
    pub(super) const IPSET: Self = Self {
        program: "ipset",
        arguments: &["restore", "-file"],
        package: "ipset",
    };
    /// Takes all sets of a node away at once: one by one each waits for the kernel, before
    /// Linux 6.8. None may be named by a rule any more.
    pub(super) const NO_SETS: &str = "destroy\n";

    /// What has `ipset` take only those sets away that a text of it makes.
    pub(super) fn no_sets_of(text: &str) -> String {
        let created = text.lines().filter_map(|it| it.strip_prefix("create "));
        let names = created.filter_map(|it| it.split(' ').next());
        names.map(|name| format!("destroy {name}\n")).collect()
    }

    /// What has `nft` take a table away, named after its family, whether it is there or not.
    pub(super) fn no_table(name: &str) -> String {
        format!("add table {name}\ndelete table {name}\n")
    }

    /// `iptables` in the kernel's own tables, which leaves other rules there alone.
    pub(super) fn iptables_legacy(family: Family) -> Self {
        Self {
            program: match family {
                Family::V4 => "iptables-legacy-restore",
                Family::V6 => "ip6tables-legacy-restore",
            },
            arguments: &["--noflush"],
            package: "iptables",
        }
    }

    /// `iptables` in the tables of nftables.
    pub(super) fn iptables_nft(family: Family) -> Self {
        Self {
            program: match family {
                Family::V4 => "iptables-nft-restore",
                Family::V6 => "ip6tables-nft-restore",
            },
            ..Self::iptables_legacy(family)
        }
    }

    /// The same for a text that empties the tables which it names, whatever is in them: chain
    /// by chain that would be too long for one transaction of an ordinary user.
    pub(super) fn that_empties(self) -> Self {
        Self {
            arguments: &[],
            ..self
        }
    }

    /// Has it write texts on some nodes, and remembers what takes them away, and who writes
    /// that.
    ///
    /// # Errors
    ///
    /// Those of [`write_on`](Self::write_on).
    pub(super) fn lay_on(
        &self,
        nodes: &[Arc<Place>],
        texts: &[String],
        (remover, removal): (RuleWriter, String),
        journal: &mut Journal,
    ) -> Result<(), LabError> {
        let written = nodes.to_vec();
        // Before the first text, because one of several may fail.
        journal.undo_by(move || {
            let removed = remover.write_on(&written, &[removal]);
            removed.err().into_iter().collect()
        });
        self.write_on(nodes, texts)
    }

    /// Has it write the same texts on each of some nodes, at the same time.
    ///
    /// # Errors
    ///
    /// [`LabError::Unsupported`] without the program, or where the kernel refuses what it
    /// writes.
    pub(super) fn write_on(&self, nodes: &[Arc<Place>], texts: &[String]) -> Result<(), LabError> {
        on_each(nodes, |node| self.write(node, texts))
    }

    fn write(&self, node: &Place, texts: &[String]) -> Result<(), LabError> {
        let program = self.find()?;
        let failed = |source| {
            LabError::network(RuleWriterError::File {
                program: self.program,
                source,
            })
        };
        let scratch = Scratch::create().map_err(failed)?;
        let file = scratch.path().join("rules");
        for text in texts {
            std::fs::write(&file, text).map_err(failed)?;
            let command = Command::new(&program)
                .args(self.arguments)
                .args([&file])
                // The machine's own lock is not for ordinary users, and of no use here.
                .env("XTABLES_LOCKFILE", scratch.path().join("lock"));
            let child = command.spawn_in(&node.namespace);
            let ended = child.and_then(|mut child| child.wait(LIMIT));
            ended.map_err(|error| self.refused(error))?;
        }
        Ok(())
    }

    fn find(&self) -> Result<PathBuf, LabError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path).chain(FOLDERS.map(PathBuf::from));
        let mut programs = folders.map(|folder| folder.join(self.program));
        let found = programs.find(|program| Path::is_file(program));
        found.ok_or_else(|| LabError::Unsupported {
            what: format!("what `{}` writes", self.program),
            needs: format!(
                "needs that program; install Debian's package {}",
                self.package
            ),
        })
    }

    fn refused(&self, error: ProcessError) -> LabError {
        match error {
            ProcessError::Failed { stderr, .. } => LabError::Unsupported {
                what: format!("what `{}` writes", self.program),
                needs: format!("the kernel, or the program, refuses it: {}", stderr.trim()),
            },
            source => LabError::network(RuleWriterError::Program {
                program: self.program,
                source,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_go_by_the_names_that_they_were_made_with() {
        let made = "create KUBE-SRC-0 hash:ip family inet\nadd KUBE-SRC-0 198.19.64.0 timeout 0\n\
                    create cali40s:1 hash:net\n";
        let removal = RuleWriter::no_sets_of(made);
        assert_eq!(removal, "destroy KUBE-SRC-0\ndestroy cali40s:1\n");
    }
}

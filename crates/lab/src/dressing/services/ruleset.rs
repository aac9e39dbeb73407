//! The rules of a proxy, as they are written.

use std::sync::Arc;

use plumbline_sys::netlink::NetlinkError;

use crate::dressing::dressed::RuleCount;
use crate::dressing::rule_writer::{RuleWriter, on_each};
use crate::error::LabError;
use crate::journal::Journal;
use crate::place::Place;

/// The rules of a set of services, in the language of the program that writes them.
pub(super) struct Ruleset {
    pub(super) writer: RuleWriter,
    /// One transaction or several, in their order.
    pub(super) texts: Vec<String>,
    /// Writes what follows the texts into the network namespace of its thread.
    pub(super) rest: Option<NetlinkWriting>,
    /// What takes all of it away, and who writes that.
    pub(super) removal: (RuleWriter, String),
    pub(super) count: RuleCount,
}

/// Writes rules by netlink, without a program.
pub(super) type NetlinkWriting = Box<dyn Fn() -> Result<(), NetlinkError> + Send + Sync>;

impl Ruleset {
    /// A text for `iptables-restore`, whose tables are otherwise empty.
    pub(super) fn of_iptables(writer: RuleWriter, text: String) -> Self {
        let count = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
        Self {
            writer,
            count: RuleCount {
                rules: count("-A") as u64,
                chains: count(":") as u64,
                elements: 0,
            },
            texts: vec![text],
            rest: None,
            removal: (
                writer.that_empties(),
                "*nat\nCOMMIT\n*filter\nCOMMIT\n".to_owned(),
            ),
        }
    }

    /// Writes them on nodes, and remembers how to take them away. Gives how many each has.
    ///
    /// # Errors
    ///
    /// [`LabError::Unsupported`] without the program, or where the kernel refuses them.
    pub(super) fn write_on(
        self,
        nodes: &[Arc<Place>],
        journal: &mut Journal,
    ) -> Result<RuleCount, LabError> {
        self.writer
            .lay_on(nodes, &self.texts, self.removal, journal)?;
        if let Some(rest) = &self.rest {
            on_each(nodes, |node| {
                let written = node.namespace.run(rest)?;
                written.map_err(|error| refused(node, error))
            })?;
        }
        Ok(self.count)
    }
}

fn refused(node: &Place, error: NetlinkError) -> LabError {
    match error.errno() {
        Some(_) => LabError::Unsupported {
            what: "what services need of nftables".to_owned(),
            needs: format!("the kernel refuses it: {error}"),
        },
        None => node.failed(error),
    }
}

//! The rules of a proxy as text.

use crate::dressing::dressed::RuleCount;
use crate::dressing::rule_writer::RuleWriter;

/// The rules of a set of services, in the language of the program that writes them.
pub(super) struct Ruleset {
    pub(super) writer: RuleWriter,
    /// One transaction or several, in their order.
    pub(super) texts: Vec<String>,
    /// What takes all of it away, and who writes that.
    pub(super) removal: (RuleWriter, String),
    pub(super) count: RuleCount,
}

//! What the programs read that write rules: tables of `iptables-restore`, sets of `ipset
//! restore`, tables of `nft`.

use std::fmt::Display;
use std::net::IpAddr;

use crate::dressing::rule_writer::short_transactions;

/// What a node is given, in the languages of the programs that read it; empty where a
/// program has nothing to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RuleText {
    /// For `ipset restore`. Comes first: rules name sets.
    pub(super) ipset: String,
    /// For `iptables-restore --noflush`: the table `filter`.
    pub(super) iptables: String,
    /// For `nft -f`, one after the other.
    pub(super) nft: Vec<String>,
    /// The table that they fill, after its family.
    pub(super) nft_table: String,
    /// Rules in all of them.
    pub(super) rules: u64,
    /// Chains, those of the kernel's own left out.
    pub(super) chains: u64,
    /// Members of sets and maps.
    pub(super) elements: u64,
}

impl RuleText {
    /// The same in the tables of nftables.
    pub(super) fn over_nftables(self) -> Self {
        let lines = self.iptables.lines();
        let table: Vec<&str> = lines.filter(|it| it.starts_with([':', '-'])).collect();
        Self {
            iptables: short_transactions("filter", &table, PIECE),
            ..self
        }
    }
}

/// Lines of one transaction in the tables of nftables: rules with sets and comments are long.
pub(super) const PIECE: usize = 80;

/// What a rule of `iptables` has where the real one has a comment: a match as well, which
/// says in other words what cannot matter to a packet.
pub(super) const COMMENT: &str = "-m comment --comment plumbline";

/// The table `filter`.
#[derive(Debug, Default)]
pub(super) struct FilterTable {
    declared: String,
    filled: String,
    chains: u64,
    rules: u64,
}

impl FilterTable {
    /// Makes a chain.
    pub(super) fn chain(&mut self, name: impl Display) {
        self.declared += &format!(":{name} - [0:0]\n");
        self.chains += 1;
    }

    /// Adds a rule at the end of a chain.
    pub(super) fn rule(&mut self, chain: impl Display, rule: impl Display) {
        self.filled += &format!("-A {chain} {rule}\n");
        self.rules += 1;
    }

    /// What a node is given of this table and the sets that it names.
    pub(super) fn with(self, sets: AddressSets) -> RuleText {
        RuleText {
            ipset: sets.text,
            iptables: format!("*filter\n{}{}COMMIT\n", self.declared, self.filled),
            rules: self.rules,
            chains: self.chains,
            elements: sets.members,
            ..RuleText::default()
        }
    }
}

/// Sets of addresses.
#[derive(Debug, Default)]
pub(super) struct AddressSets {
    text: String,
    members: u64,
}

impl AddressSets {
    /// Makes a set of a kind, such as `hash:ip`, whose members have these options.
    pub(super) fn set(&mut self, name: &str, kind: &str, members: &[IpAddr], options: &str) {
        self.text += &format!("create {name} {kind}\n");
        for member in members {
            self.text += &format!("add {name} {member}{options}\n");
        }
        self.members += members.len() as u64;
    }
}

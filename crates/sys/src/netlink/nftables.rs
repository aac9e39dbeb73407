//! Rules of nftables (`linux/netfilter/nf_tables.h`), thousands in one transaction.
//!
//! The program `nft` writes any rules, but an ordinary user's may send the kernel no more at
//! once than `net.core.wmem_default` bytes, and each of its starts asks the kernel for all
//! that is there. What is written here are the expressions that rules of services have.

mod expression;

use netlink_packet_core::{NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL};

use super::NetlinkError;
use super::attribute::{attribute, integer, named, nested};
use super::raw::{Raw, Verb, message};

pub use expression::{NftElement, NftExpression, NftFamily, NftVerdict};

const NFNL_MSG_BATCH_BEGIN: u16 = 0x10;
const NFNL_MSG_BATCH_END: u16 = 0x11;
/// `NFNL_SUBSYS_NFTABLES`, in the upper half of the types of its messages.
const NFTABLES: u16 = 10;
const NFT_MSG_NEWTABLE: u16 = 0;
const NFT_MSG_DELTABLE: u16 = 2;
const NFT_MSG_NEWCHAIN: u16 = 3;
const NFT_MSG_DELCHAIN: u16 = 5;
const NFT_MSG_NEWRULE: u16 = 6;
const NFT_MSG_DELRULE: u16 = 8;
const NFT_MSG_NEWSET: u16 = 9;
const NFT_MSG_NEWSETELEM: u16 = 12;

/// The attribute that names the table, in messages of every type.
const NFTA_TABLE: u16 = 1;
const NFTA_CHAIN_NAME: u16 = 3;
const NFTA_CHAIN_HOOK: u16 = 4;
const NFTA_CHAIN_TYPE: u16 = 7;
const NFTA_HOOK_HOOKNUM: u16 = 1;
const NFTA_HOOK_PRIORITY: u16 = 2;
const NFTA_RULE_CHAIN: u16 = 2;
const NFTA_RULE_EXPRESSIONS: u16 = 4;
const NFTA_SET_NAME: u16 = 2;
const NFTA_SET_FLAGS: u16 = 3;
const NFTA_SET_KEY_TYPE: u16 = 4;
const NFTA_SET_KEY_LEN: u16 = 5;
const NFTA_SET_DATA_TYPE: u16 = 6;
const NFTA_SET_DESC: u16 = 9;
const NFTA_SET_ID: u16 = 10;
const NFTA_SET_USERDATA: u16 = 13;
const NFTA_SET_DESC_SIZE: u16 = 1;
const NFTA_SET_ELEM_LIST_SET: u16 = 2;
const NFTA_SET_ELEM_LIST_ELEMENTS: u16 = 3;
const NFTA_SET_ELEM_LIST_SET_ID: u16 = 4;

const NF_INET_FORWARD: u32 = 2;
/// The priority of what filters.
const NF_IP_PRI_FILTER: u32 = 0;
const NFT_SET_ANONYMOUS: u32 = 0x1;
const NFT_SET_CONSTANT: u32 = 0x2;
const NFT_SET_MAP: u32 = 0x8;
const NFT_DATA_VERDICT: u32 = 0xffff_ff00;
/// What `nft` calls the type of a number.
const TYPE_INTEGER: u32 = 4;

/// The sequence number of all messages: a transaction has one answer, and the next one is
/// sent after it.
const SEQUENCE: u32 = 1;
/// Send buffer that is asked for. A transaction is not cut short by a signal, and each has
/// the kernel look at all chains that there are.
const SEND_BYTES: usize = 1 << 20;
/// Elements of one message: an attribute has at most 64 KiB.
const MOST_ELEMENTS: usize = 200;

/// Adds chains, rules and elements to a table, in transactions as large as the kernel takes
/// them, and takes them away. As [`NetlinkSocket`](super::NetlinkSocket), it belongs to the
/// network namespace of the thread that opened it. What was added and not yet
/// [finished](Self::finish) may be lost. After an error it is of no further use.
#[derive(Debug)]
pub struct NftWriter {
    socket: Raw,
    family: NftFamily,
    table: String,
    /// Most bytes of a transaction.
    most: usize,
    /// The messages of the next one; empty, or with its beginning.
    transaction: Vec<u8>,
    /// Where its last message begins.
    last: usize,
    /// Maps that rules have brought along, so far.
    maps: u32,
}

impl NftWriter {
    /// Opens a socket in the network namespace of the calling thread, for a table whose
    /// rules have no maps of their own yet.
    ///
    /// # Errors
    ///
    /// [`NetlinkError::is_unsupported`] on a kernel without `CONFIG_NETFILTER_NETLINK`.
    pub fn open(family: NftFamily, table: &str) -> Result<Self, NetlinkError> {
        let socket = Raw::open(libc::NETLINK_NETFILTER)?;
        // Each message of a transaction that fails is answered.
        socket.lose_answers()?;
        let most = socket.widen(SEND_BYTES)?;
        Ok(Self {
            socket,
            family,
            table: table.to_owned(),
            most,
            transaction: Vec::new(),
            last: 0,
            maps: 0,
        })
    }

    /// Makes the table, empty, whether it was there or not.
    pub fn empty_table(&mut self) -> Result<(), NetlinkError> {
        self.table(NFT_MSG_NEWTABLE, NLM_F_CREATE)?;
        self.remove_table()?;
        self.table(NFT_MSG_NEWTABLE, NLM_F_CREATE)
    }

    /// Removes the table with all that is in it.
    pub fn remove_table(&mut self) -> Result<(), NetlinkError> {
        self.table(NFT_MSG_DELTABLE, 0)
    }

    fn table(&mut self, kind: u16, flags: u16) -> Result<(), NetlinkError> {
        let table = self.message(kind, flags, &[self.named_table()]);
        self.add(&[table])
    }

    /// Adds a chain to which all packets come that the namespace forwards, and that lets
    /// them pass.
    pub fn forward_chain(&mut self, name: &str) -> Result<(), NetlinkError> {
        let hook = [
            integer(NFTA_HOOK_HOOKNUM, NF_INET_FORWARD),
            integer(NFTA_HOOK_PRIORITY, NF_IP_PRI_FILTER),
        ];
        let attributes = [
            self.named_table(),
            named(NFTA_CHAIN_NAME, name),
            nested(NFTA_CHAIN_HOOK, &hook),
            named(NFTA_CHAIN_TYPE, "filter"),
        ];
        let chain = self.message(NFT_MSG_NEWCHAIN, NLM_F_CREATE | NLM_F_EXCL, &attributes);
        self.add(&[chain])
    }

    /// Removes all rules of a chain.
    pub fn empty_chain(&mut self, name: &str) -> Result<(), NetlinkError> {
        let attributes = [self.named_table(), named(NFTA_RULE_CHAIN, name)];
        let rules = self.message(NFT_MSG_DELRULE, 0, &attributes);
        self.add(&[rules])
    }

    /// Removes a chain to which nothing leads, with its rules.
    pub fn remove_chain(&mut self, name: &str) -> Result<(), NetlinkError> {
        let attributes = [self.named_table(), named(NFTA_CHAIN_NAME, name)];
        let chain = self.message(NFT_MSG_DELCHAIN, 0, &attributes);
        self.add(&[chain])
    }

    /// Adds a chain that only other chains lead to.
    pub fn chain(&mut self, name: &str) -> Result<(), NetlinkError> {
        let attributes = [self.named_table(), named(NFTA_CHAIN_NAME, name)];
        let chain = self.message(NFT_MSG_NEWCHAIN, NLM_F_CREATE | NLM_F_EXCL, &attributes);
        self.add(&[chain])
    }

    /// Adds a rule to the end of a chain.
    pub fn rule(
        &mut self,
        chain: &str,
        expressions: &[NftExpression<'_>],
    ) -> Result<(), NetlinkError> {
        let mut messages = Vec::new();
        let mut encoded = Vec::new();
        for expression in expressions {
            let map = match expression {
                NftExpression::VerdictByNumber(verdicts) => {
                    self.maps += 1;
                    // The kernel would look through all names for a free one.
                    let name = format!("__map{}", self.maps - 1);
                    messages.extend(self.map(&name, verdicts));
                    name
                }
                _ => String::new(),
            };
            encoded.extend(expression.encode(self.family, (map.as_str(), self.maps)));
        }
        let attributes = [
            self.named_table(),
            named(NFTA_RULE_CHAIN, chain),
            nested(NFTA_RULE_EXPRESSIONS, &encoded),
        ];
        messages.push(self.message(NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND, &attributes));
        self.add(&messages)
    }

    /// Adds elements to a set or map.
    pub fn elements(&mut self, set: &str, elements: &[NftElement<'_>]) -> Result<(), NetlinkError> {
        for message in self.element_messages(&named(NFTA_SET_ELEM_LIST_SET, set), elements) {
            self.add(&[message])?;
        }
        Ok(())
    }

    /// Writes what is not written yet.
    pub fn finish(mut self) -> Result<(), NetlinkError> {
        self.commit()
    }

    /// A map from numbers, which comes and goes with the rule that follows.
    fn map(&self, name: &str, verdicts: &[NftVerdict<'_>]) -> Vec<Vec<u8>> {
        // Tells `nft` that keys are in the byte order of this machine: a tag, the length
        // of a value, and the value.
        let order = [&[0, 4][..], &1u32.to_ne_bytes()].concat();
        let elements = (0u32..).zip(verdicts);
        let elements = elements.map(|(number, verdict)| {
            let element = NftElement::new(&[&number.to_ne_bytes()]);
            element.verdict(*verdict)
        });
        let elements: Vec<NftElement<'_>> = elements.collect();
        let flags = NFT_SET_ANONYMOUS | NFT_SET_CONSTANT | NFT_SET_MAP;
        let size = integer(NFTA_SET_DESC_SIZE, elements.len() as u32);
        let attributes = [
            self.named_table(),
            named(NFTA_SET_NAME, name),
            integer(NFTA_SET_FLAGS, flags),
            integer(NFTA_SET_KEY_TYPE, TYPE_INTEGER),
            integer(NFTA_SET_KEY_LEN, 4),
            integer(NFTA_SET_DATA_TYPE, NFT_DATA_VERDICT),
            integer(NFTA_SET_ID, self.maps),
            nested(NFTA_SET_DESC, &[size]),
            attribute(NFTA_SET_USERDATA, &order),
        ];
        let map = self.message(NFT_MSG_NEWSET, NLM_F_CREATE | NLM_F_EXCL, &attributes);
        let mut messages = vec![map];
        // The kernel would look for the name among those of all maps.
        let number = integer(NFTA_SET_ELEM_LIST_SET_ID, self.maps);
        messages.extend(self.element_messages(&number, &elements));
        messages
    }

    /// `set` is the attribute that says which one.
    fn element_messages(&self, set: &[u8], elements: &[NftElement<'_>]) -> Vec<Vec<u8>> {
        let message = |some: &[NftElement<'_>]| {
            let encoded: Vec<Vec<u8>> = some.iter().map(NftElement::encode).collect();
            let attributes = [
                self.named_table(),
                set.to_vec(),
                nested(NFTA_SET_ELEM_LIST_ELEMENTS, &encoded),
            ];
            self.message(NFT_MSG_NEWSETELEM, NLM_F_CREATE, &attributes)
        };
        elements.chunks(MOST_ELEMENTS).map(message).collect()
    }

    fn named_table(&self) -> Vec<u8> {
        named(NFTA_TABLE, &self.table)
    }

    fn message(&self, kind: u16, flags: u16, attributes: &[Vec<u8>]) -> Vec<u8> {
        // struct nfgenmsg: family, version, res_id.
        let mut body = vec![self.family as u8, 0, 0, 0];
        body.extend(attributes.concat());
        message((NFTABLES << 8) | kind, flags, SEQUENCE, &body)
    }

    /// Adds messages that have to be in the same transaction to the next one, after that
    /// was written where it would become too long.
    fn add(&mut self, messages: &[Vec<u8>]) -> Result<(), NetlinkError> {
        let end = edge(NFNL_MSG_BATCH_END).len();
        let bytes: usize = messages.iter().map(Vec::len).sum();
        if self.transaction.len() + bytes + end > self.most {
            self.commit()?;
        }
        if self.transaction.is_empty() {
            self.transaction = edge(NFNL_MSG_BATCH_BEGIN);
        }
        for message in messages {
            self.last = self.transaction.len();
            self.transaction.extend(message);
        }
        Ok(())
    }

    /// Writes what is not written yet, to go on after that.
    pub fn commit(&mut self) -> Result<(), NetlinkError> {
        /// Where a header has its flags.
        const FLAGS: std::ops::Range<usize> = 6..8;
        if self.transaction.is_empty() {
            return Ok(());
        }
        // Errors are answered in the order of messages, and this one after them.
        let flags = &mut self.transaction[self.last..][FLAGS];
        let asked = u16::from_ne_bytes([flags[0], flags[1]]) | NLM_F_ACK;
        flags.copy_from_slice(&asked.to_ne_bytes());
        self.transaction.extend(edge(NFNL_MSG_BATCH_END));
        let messages = std::mem::take(&mut self.transaction);
        let verb = Verb::new("write rules into", format!("table `{}`", self.table));
        self.socket.transact(verb, SEQUENCE, &messages)
    }
}

/// What stands before the messages of a transaction, or behind them.
fn edge(kind: u16) -> Vec<u8> {
    let [high, low] = NFTABLES.to_be_bytes();
    message(kind, 0, SEQUENCE, &[libc::AF_UNSPEC as u8, 0, high, low])
}

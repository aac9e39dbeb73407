//! What rules consist of, and the elements of sets.

use std::net::SocketAddr;

use crate::netlink::attribute::{attribute, integer, named, nested, octets};

const NFTA_LIST_ELEM: u16 = 1;
const NFTA_EXPR_NAME: u16 = 1;
const NFTA_EXPR_DATA: u16 = 2;
const NFTA_DATA_VALUE: u16 = 1;
const NFTA_DATA_VERDICT: u16 = 2;
const NFTA_VERDICT_CODE: u16 = 1;
const NFTA_VERDICT_CHAIN: u16 = 2;
const NFT_JUMP: i32 = -3;
const NFT_GOTO: i32 = -4;

/// The register whose content is the verdict.
const VERDICT: u32 = 0;
/// The one that holds what is compared, or an address to be translated to.
const FIRST: u32 = 1;
/// The one that holds a port to be translated to.
const SECOND: u32 = 2;

/// The packets that a table sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum NftFamily {
    /// IPv4.
    Ip = libc::AF_INET as u8,
    /// IPv6.
    Ip6 = libc::AF_INET6 as u8,
}

/// Where a packet goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NftVerdict<'a> {
    /// In a chain, and behind this rule if that has no other end.
    Jump(&'a str),
    /// In a chain, and not here again.
    Goto(&'a str),
}

/// A step of a rule. Steps load something into a register, compare it, or act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NftExpression<'a> {
    /// Loads the first bytes of the packet's source address.
    Source {
        /// How many.
        bytes: u32,
    },
    /// Loads the packet's destination address.
    Destination,
    /// Loads the number of the packet's transport protocol, one byte.
    TransportProtocol,
    /// Loads a random number below this one.
    Random(u32),
    /// Ends the rule unless what was loaded is this.
    Equal(&'a [u8]),
    /// Ends the rule if what was loaded is this.
    NotEqual(&'a [u8]),
    /// Goes on somewhere else.
    Verdict(NftVerdict<'a>),
    /// Goes on by what was loaded, a number: that of one of these verdicts.
    VerdictByNumber(&'a [NftVerdict<'a>]),
    /// Translates the destination of the packet's connection.
    DestinationNat(SocketAddr),
}

/// An element of a set or map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NftElement<'a> {
    key: Vec<u8>,
    verdict: Option<NftVerdict<'a>>,
}

impl<'a> NftElement<'a> {
    /// An element by the parts of its key, each in the byte order of packets.
    pub fn new(parts: &[&[u8]]) -> Self {
        let mut key = Vec::new();
        for part in parts {
            key.extend(*part);
            // Each part has registers of its own.
            key.resize(key.len().next_multiple_of(4), 0);
        }
        Self { key, verdict: None }
    }

    /// With what a map has for it.
    #[must_use]
    pub fn verdict(self, verdict: NftVerdict<'a>) -> Self {
        let verdict = Some(verdict);
        Self { verdict, ..self }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        const NFTA_SET_ELEM_KEY: u16 = 1;
        const NFTA_SET_ELEM_DATA: u16 = 2;
        let mut attributes = vec![value(NFTA_SET_ELEM_KEY, &self.key)];
        let data = |verdict: NftVerdict<'_>| nested(NFTA_SET_ELEM_DATA, &[verdict.encode()]);
        attributes.extend(self.verdict.map(data));
        nested(NFTA_LIST_ELEM, &attributes)
    }
}

impl NftVerdict<'_> {
    fn encode(self) -> Vec<u8> {
        let (code, chain) = match self {
            Self::Jump(chain) => (NFT_JUMP, chain),
            Self::Goto(chain) => (NFT_GOTO, chain),
        };
        let code = integer(NFTA_VERDICT_CODE, code.cast_unsigned());
        nested(NFTA_DATA_VERDICT, &[code, named(NFTA_VERDICT_CHAIN, chain)])
    }
}

impl NftExpression<'_> {
    /// In a table of this family; `map` is the name and number of the map that holds its
    /// verdicts, if it has some. One may be several of the kernel's.
    pub(super) fn encode(&self, family: NftFamily, map: (&str, u32)) -> Vec<Vec<u8>> {
        // Offsets in the header, and the length of an address.
        let (source, destination, bytes) = match family {
            NftFamily::Ip => (12, 16, 4),
            NftFamily::Ip6 => (8, 24, 16),
        };
        vec![match self {
            Self::Source { bytes } => header(source, *bytes),
            Self::Destination => header(destination, bytes),
            Self::TransportProtocol => transport_protocol(),
            Self::Random(below) => random(*below),
            Self::Equal(value) => compare(0, value),
            Self::NotEqual(value) => compare(1, value),
            Self::Verdict(verdict) => load(VERDICT, verdict.encode()),
            Self::VerdictByNumber(_) => look_up(map),
            Self::DestinationNat(to) => return destination_nat(*to, family),
        }]
    }
}

fn expression(name: &str, attributes: &[Vec<u8>]) -> Vec<u8> {
    let data = nested(NFTA_EXPR_DATA, attributes);
    nested(NFTA_LIST_ELEM, &[named(NFTA_EXPR_NAME, name), data])
}

/// An attribute that holds a value.
fn value(kind: u16, bytes: &[u8]) -> Vec<u8> {
    nested(kind, &[attribute(NFTA_DATA_VALUE, bytes)])
}

fn header(offset: u32, bytes: u32) -> Vec<u8> {
    const NFTA_PAYLOAD_DREG: u16 = 1;
    const NFTA_PAYLOAD_BASE: u16 = 2;
    const NFTA_PAYLOAD_OFFSET: u16 = 3;
    const NFTA_PAYLOAD_LEN: u16 = 4;
    const NFT_PAYLOAD_NETWORK_HEADER: u32 = 1;
    let attributes = [
        integer(NFTA_PAYLOAD_DREG, FIRST),
        integer(NFTA_PAYLOAD_BASE, NFT_PAYLOAD_NETWORK_HEADER),
        integer(NFTA_PAYLOAD_OFFSET, offset),
        integer(NFTA_PAYLOAD_LEN, bytes),
    ];
    expression("payload", &attributes)
}

fn transport_protocol() -> Vec<u8> {
    const NFTA_META_DREG: u16 = 1;
    const NFTA_META_KEY: u16 = 2;
    const NFT_META_L4PROTO: u32 = 16;
    let key = integer(NFTA_META_KEY, NFT_META_L4PROTO);
    expression("meta", &[key, integer(NFTA_META_DREG, FIRST)])
}

fn random(below: u32) -> Vec<u8> {
    const NFTA_NG_DREG: u16 = 1;
    const NFTA_NG_MODULUS: u16 = 2;
    const NFTA_NG_TYPE: u16 = 3;
    const NFTA_NG_OFFSET: u16 = 4;
    const NFT_NG_RANDOM: u32 = 1;
    let attributes = [
        integer(NFTA_NG_DREG, FIRST),
        integer(NFTA_NG_MODULUS, below),
        integer(NFTA_NG_TYPE, NFT_NG_RANDOM),
        integer(NFTA_NG_OFFSET, 0),
    ];
    expression("numgen", &attributes)
}

/// By an operator of `enum nft_cmp_ops`.
fn compare(operator: u32, with: &[u8]) -> Vec<u8> {
    const NFTA_CMP_SREG: u16 = 1;
    const NFTA_CMP_OP: u16 = 2;
    const NFTA_CMP_DATA: u16 = 3;
    let attributes = [
        integer(NFTA_CMP_SREG, FIRST),
        integer(NFTA_CMP_OP, operator),
        value(NFTA_CMP_DATA, with),
    ];
    expression("cmp", &attributes)
}

/// Puts data into a register.
fn load(register: u32, data: Vec<u8>) -> Vec<u8> {
    const NFTA_IMMEDIATE_DREG: u16 = 1;
    const NFTA_IMMEDIATE_DATA: u16 = 2;
    let attributes = [
        integer(NFTA_IMMEDIATE_DREG, register),
        nested(NFTA_IMMEDIATE_DATA, &[data]),
    ];
    expression("immediate", &attributes)
}

fn look_up((name, number): (&str, u32)) -> Vec<u8> {
    const NFTA_LOOKUP_SET: u16 = 1;
    const NFTA_LOOKUP_SREG: u16 = 2;
    const NFTA_LOOKUP_DREG: u16 = 3;
    const NFTA_LOOKUP_SET_ID: u16 = 4;
    let attributes = [
        named(NFTA_LOOKUP_SET, name),
        integer(NFTA_LOOKUP_SET_ID, number),
        integer(NFTA_LOOKUP_SREG, FIRST),
        integer(NFTA_LOOKUP_DREG, VERDICT),
    ];
    expression("lookup", &attributes)
}

fn destination_nat(to: SocketAddr, family: NftFamily) -> Vec<Vec<u8>> {
    const NFTA_NAT_TYPE: u16 = 1;
    const NFTA_NAT_FAMILY: u16 = 2;
    const NFTA_NAT_REG_ADDR_MIN: u16 = 3;
    const NFTA_NAT_REG_PROTO_MIN: u16 = 5;
    const NFT_NAT_DNAT: u32 = 1;
    let translate = [
        integer(NFTA_NAT_TYPE, NFT_NAT_DNAT),
        integer(NFTA_NAT_FAMILY, u32::from(family as u8)),
        integer(NFTA_NAT_REG_ADDR_MIN, FIRST),
        integer(NFTA_NAT_REG_PROTO_MIN, SECOND),
    ];
    let port = to.port().to_be_bytes();
    vec![
        load(FIRST, attribute(NFTA_DATA_VALUE, &octets(to.ip()))),
        load(SECOND, attribute(NFTA_DATA_VALUE, &port)),
        expression("nat", &translate),
    ]
}

//! IPsec by netlink (`linux/xfrm.h`): states say how packets are transformed,
//! and policies say which packets are.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL};

use super::NetlinkError;
use super::attribute::attribute;
use super::raw::{Raw, Verb};

const XFRM_MSG_NEWSA: u16 = 0x10;
const XFRM_MSG_DELSA: u16 = 0x11;
const XFRM_MSG_GETSA: u16 = 0x12;
const XFRM_MSG_NEWPOLICY: u16 = 0x13;
const XFRM_MSG_DELPOLICY: u16 = 0x14;
const XFRMA_ALG_CRYPT: u16 = 2;
const XFRMA_TMPL: u16 = 5;
const XFRMA_ALG_AEAD: u16 = 18;
const XFRM_MODE_TUNNEL: u8 = 1;
const IPPROTO_ESP: u8 = 50;
const ALGORITHM_NAME_BYTES: usize = 64;
/// Where `struct xfrm_usersa_info` counts packets: `curlft.packets`.
const PACKETS: std::ops::Range<usize> = 168..176;
/// `XFRM_INF`: no limit.
const NO_LIMIT: u64 = u64::MAX;

/// An XFRM netlink socket. As [`NetlinkSocket`](super::NetlinkSocket), it belongs to the
/// network namespace of the thread that opened it.
#[derive(Debug)]
pub struct XfrmSocket(Raw);

/// How ESP encrypts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EspCipher {
    /// As the kernel names it, such as `rfc3686(ctr(aes))`.
    pub name: &'static str,
    /// Its key, in the form that the kernel takes.
    pub key: &'static [u8],
    /// Bits of the check value, where the cipher also authenticates.
    pub check_bits: Option<u32>,
}

/// ESP in tunnel mode from one host to another (RFC 4303).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EspState {
    /// Source of the outer packets.
    pub source: IpAddr,
    /// Destination of the outer packets.
    pub destination: IpAddr,
    /// Security parameters index, which the packets carry.
    pub spi: u32,
    /// How they are encrypted.
    pub cipher: EspCipher,
}

/// Where in the stack a policy looks at packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PolicyDirection {
    /// For the host itself, on their way in.
    In = 0,
    /// On their way out.
    Out = 1,
    /// Being forwarded.
    Forward = 2,
}

/// Packets between two networks pass through ESP in tunnel mode between two
/// hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EspPolicy {
    /// Where.
    pub direction: PolicyDirection,
    /// Source network and the length of its prefix in bits.
    pub source: (IpAddr, u8),
    /// Destination network and the length of its prefix in bits.
    pub destination: (IpAddr, u8),
    /// Source of the outer packets.
    pub tunnel_source: IpAddr,
    /// Destination of the outer packets.
    pub tunnel_destination: IpAddr,
    /// Policies with a smaller number come first.
    pub priority: u32,
}

impl XfrmSocket {
    /// Opens a socket in the network namespace of the calling thread.
    ///
    /// # Errors
    ///
    /// [`NetlinkError::is_unsupported`] on a kernel without `CONFIG_XFRM_USER`.
    pub fn open() -> Result<Self, NetlinkError> {
        Raw::open(libc::NETLINK_XFRM).map(Self)
    }

    /// Adds a state.
    ///
    /// # Errors
    ///
    /// [`NetlinkError::is_unsupported`] on a kernel without ESP or the cipher.
    pub fn add_state(&self, state: &EspState) -> Result<(), NetlinkError> {
        let mut body = state.info();
        let kind = match state.cipher.check_bits {
            Some(_) => XFRMA_ALG_AEAD,
            None => XFRMA_ALG_CRYPT,
        };
        body.extend(attribute(kind, &state.cipher.algorithm()));
        self.execute("add", XFRM_MSG_NEWSA, state.name(), body, true)
    }

    /// Deletes a state.
    pub fn delete_state(&self, state: &EspState) -> Result<(), NetlinkError> {
        self.execute("delete", XFRM_MSG_DELSA, state.name(), state.id(), false)
    }

    /// How many packets a state has transformed.
    pub fn packets(&self, state: &EspState) -> Result<u64, NetlinkError> {
        let verb = || Verb::new("look up", state.name());
        let mut packets = None;
        let (kind, id) = (XFRM_MSG_GETSA, state.id());
        self.0.exchange(verb(), kind, NLM_F_ACK, &id, |answer| {
            let counted = answer.body().get(PACKETS);
            let counted = counted.and_then(|bytes| bytes.try_into().ok());
            packets = counted.map(u64::from_ne_bytes);
            Ok(())
        })?;
        packets.ok_or_else(|| verb().garbled("it has no count"))
    }

    /// Adds a policy.
    pub fn add_policy(&self, policy: &EspPolicy) -> Result<(), NetlinkError> {
        let mut body = policy.info();
        body.extend(attribute(XFRMA_TMPL, &policy.template()));
        self.execute("add", XFRM_MSG_NEWPOLICY, policy.name(), body, true)
    }

    /// Deletes a policy.
    pub fn delete_policy(&self, policy: &EspPolicy) -> Result<(), NetlinkError> {
        // struct xfrm_userpolicy_id: sel, index, dir.
        let mut body = policy.selector();
        body.extend(0u32.to_ne_bytes());
        body.push(policy.direction as u8);
        let body = padded(body, 64);
        self.execute("delete", XFRM_MSG_DELPOLICY, policy.name(), body, false)
    }

    fn execute(
        &self,
        action: &'static str,
        kind: u16,
        object: String,
        body: Vec<u8>,
        new: bool,
    ) -> Result<(), NetlinkError> {
        let create = if new { NLM_F_CREATE | NLM_F_EXCL } else { 0 };
        let verb = Verb::new(action, object);
        let flags = NLM_F_ACK | create;
        self.0.exchange(verb, kind, flags, &body, |_| Ok(()))
    }
}

impl EspState {
    fn name(&self) -> String {
        format!(
            "IPsec state esp {} to {} ({})",
            self.source, self.destination, self.cipher.name
        )
    }

    /// struct xfrm_usersa_id: daddr, spi, family, proto.
    fn id(&self) -> Vec<u8> {
        let mut body = address(self.destination).to_vec();
        body.extend(self.spi.to_be_bytes());
        body.extend(family(self.destination).to_ne_bytes());
        body.push(IPPROTO_ESP);
        padded(body, 24)
    }

    /// struct xfrm_usersa_info, 224 bytes.
    fn info(&self) -> Vec<u8> {
        let mut body = vec![0; 56]; // sel: any packet
        body[40..42].copy_from_slice(&family(self.source).to_ne_bytes());
        body.extend(address(self.destination)); // id
        body.extend(self.spi.to_be_bytes());
        body.extend([IPPROTO_ESP, 0, 0, 0]);
        body.extend(address(self.source)); // saddr
        body.extend(no_limits()); // lft
        body.extend([0; 32]); // curlft
        body.extend([0; 12]); // stats
        body.extend([0; 8]); // seq, reqid
        body.extend(family(self.source).to_ne_bytes());
        body.push(XFRM_MODE_TUNNEL); // mode; replay_window and flags are 0
        padded(body, 224)
    }
}

impl EspCipher {
    /// struct xfrm_algo, or struct xfrm_algo_aead.
    fn algorithm(&self) -> Vec<u8> {
        let mut value = padded(self.name.as_bytes().to_vec(), ALGORITHM_NAME_BYTES);
        value.extend((self.key.len() as u32 * 8).to_ne_bytes());
        if let Some(bits) = self.check_bits {
            value.extend(bits.to_ne_bytes());
        }
        value.extend(self.key);
        value
    }
}

impl EspPolicy {
    fn name(&self) -> String {
        format!(
            "IPsec policy {}/{} to {}/{} ({:?})",
            self.source.0, self.source.1, self.destination.0, self.destination.1, self.direction
        )
    }

    /// struct xfrm_selector, 56 bytes: any port and protocol.
    fn selector(&self) -> Vec<u8> {
        let mut body = address(self.destination.0).to_vec();
        body.extend(address(self.source.0));
        body.extend([0; 8]); // ports and their masks
        body.extend(family(self.source.0).to_ne_bytes());
        body.extend([self.destination.1, self.source.1]);
        padded(body, 56)
    }

    /// struct xfrm_userpolicy_info, 168 bytes. Action 0 allows.
    fn info(&self) -> Vec<u8> {
        let mut body = self.selector();
        body.extend(no_limits()); // lft
        body.extend([0; 32]); // curlft
        body.extend(self.priority.to_ne_bytes());
        body.extend(0u32.to_ne_bytes()); // index: the kernel's choice
        body.push(self.direction as u8);
        padded(body, 168)
    }

    /// struct xfrm_user_tmpl, 64 bytes: any state of ESP between the hosts,
    /// whatever its algorithms.
    fn template(&self) -> Vec<u8> {
        let mut body = address(self.tunnel_destination).to_vec(); // id
        body.extend([0; 4]);
        body.extend([IPPROTO_ESP, 0, 0, 0]);
        body.extend(family(self.tunnel_source).to_ne_bytes());
        body.extend([0; 2]);
        body.extend(address(self.tunnel_source)); // saddr
        body.extend([0; 4]); // reqid
        body.extend([XFRM_MODE_TUNNEL, 0, 0, 0]); // mode, share, optional
        body.extend([0xff; 12]); // aalgos, ealgos, calgos
        body
    }
}

/// struct xfrm_lifetime_cfg: no limit of bytes or packets, none of time.
fn no_limits() -> Vec<u8> {
    padded(NO_LIMIT.to_ne_bytes().repeat(4), 64)
}

/// xfrm_address_t.
fn address(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&address.octets());
            bytes
        }
        IpAddr::V6(address) => address.octets(),
    }
}

fn family(address: IpAddr) -> u16 {
    u8::from(super::family(address)).into()
}

fn padded(mut bytes: Vec<u8>, length: usize) -> Vec<u8> {
    bytes.resize(length, 0);
    bytes
}

//! Attributes of messages that are built by hand.

use std::net::IpAddr;

/// An attribute (`struct nlattr`) with its value, aligned so that another may
/// follow. Values are far below 64 KiB.
pub(super) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = ((value.len() + HEADER_BYTES) as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// An attribute that holds others.
pub(super) fn nested(kind: u16, attributes: &[Vec<u8>]) -> Vec<u8> {
    attribute(kind | NLA_F_NESTED, &attributes.concat())
}

/// An attribute that is a name, with the zero byte that the kernel expects
/// after it.
pub(super) fn named(kind: u16, name: &str) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.push(0);
    attribute(kind, &bytes)
}

/// An attribute that is a number, in the byte order of netfilter.
pub(super) fn integer(kind: u16, number: u32) -> Vec<u8> {
    attribute(kind, &number.to_be_bytes())
}

/// An address as packets have it: 4 bytes, or 16.
pub fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// The value of the first attribute of this kind.
pub(super) fn find(mut bytes: &[u8], kind: u16) -> Option<&[u8]> {
    while bytes.len() >= HEADER_BYTES {
        let length = usize::from(u16::from_ne_bytes([bytes[0], bytes[1]]));
        let found = u16::from_ne_bytes([bytes[2], bytes[3]]);
        let value = bytes.get(HEADER_BYTES..length)?;
        if found & !NLA_F_NESTED == kind {
            return Some(value);
        }
        bytes = bytes.get(length.next_multiple_of(4)..)?;
    }
    None
}

const HEADER_BYTES: usize = 4;
const NLA_F_NESTED: u16 = 0x8000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_found() {
        let inner = [attribute(1, b"abc"), attribute(2, &[7])];
        let mut bytes = attribute(9, &[]);
        bytes.extend(nested(3, &inner));
        let inside = find(&bytes, 3).expect("there");
        assert_eq!(find(inside, 1), Some(&b"abc"[..]));
        assert_eq!(find(inside, 2), Some(&[7][..]));
        assert_eq!(find(inside, 4), None);
    }

    #[test]
    fn torn_attributes_end_the_search() {
        let whole = attribute(1, b"abcdefgh");
        for length in 0..whole.len() {
            assert_eq!(find(&whole[..length], 1), None, "{length} bytes");
        }
        assert_eq!(find(&[0; 8], 1), None, "a length of nothing");
    }
}

//! The ICMP error for a frame that would have to be fragmented and may not.

use super::format::ETHERNET;

const IP_HEADER: usize = 20;
const ICMP_HEADER: usize = 8;
/// An Ethernet frame with an ICMP error that quotes the longest header of IPv4
/// and eight bytes.
pub(super) const ANSWER: usize = ETHERNET + IP_HEADER + ICMP_HEADER + 60 + 8;

/// The answer to the sender of a frame that is longer than `mtu` and must not be
/// fragmented (RFC 1191), in the name of the frame's receiver; `None` for a frame
/// to many, which must not be answered, or a truncated one.
pub(super) fn too_long<'a>(
    frame: &[u8],
    mtu: usize,
    answer: &'a mut [u8; ANSWER],
) -> Option<&'a [u8]> {
    let to_many = frame.first()? & 1 != 0;
    let (destination, source) = (frame.get(..6)?, frame.get(6..12)?);
    let packet = frame.get(ETHERNET..)?;
    let header = usize::from(packet.first()? & 0xf) * 4;
    let quoted = packet.get(..header + 8)?;
    let length = ETHERNET + IP_HEADER + ICMP_HEADER + quoted.len();
    let mtu = u16::try_from(mtu).ok()?;
    if to_many {
        return None;
    }
    let answer = answer.get_mut(..length)?;
    answer.fill(0);
    let (ethernet, rest) = answer.split_at_mut_checked(ETHERNET)?;
    ethernet.get_mut(..6)?.copy_from_slice(source);
    ethernet.get_mut(6..12)?.copy_from_slice(destination);
    ethernet.get_mut(12..)?.copy_from_slice(&[0x08, 0x00]);

    let (ip, icmp) = rest.split_at_mut_checked(IP_HEADER)?;
    let total = (IP_HEADER + icmp.len()) as u16;
    ip.get_mut(..2)?.copy_from_slice(&[0x45, *packet.get(1)?]);
    ip.get_mut(2..4)?.copy_from_slice(&total.to_be_bytes());
    // TTL 64, ICMP.
    ip.get_mut(8..10)?.copy_from_slice(&[64, 1]);
    ip.get_mut(12..16)?.copy_from_slice(packet.get(16..20)?);
    ip.get_mut(16..20)?.copy_from_slice(packet.get(12..16)?);
    let sum = checksum(ip).to_be_bytes();
    ip.get_mut(10..12)?.copy_from_slice(&sum);

    // Destination unreachable, fragmentation needed.
    icmp.get_mut(..2)?.copy_from_slice(&[3, 4]);
    icmp.get_mut(6..8)?.copy_from_slice(&mtu.to_be_bytes());
    icmp.get_mut(8..)?.copy_from_slice(quoted);
    let sum = checksum(icmp).to_be_bytes();
    icmp.get_mut(2..4)?.copy_from_slice(&sum);
    Some(answer)
}

/// The checksum of the Internet (RFC 1071), of what is shorter than 64 KiB.
pub(super) fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = 0;
    for pair in bytes.chunks(2) {
        let low = pair.get(1).copied().unwrap_or(0);
        let high = pair.first().copied().unwrap_or(0);
        sum += u32::from(u16::from_be_bytes([high, low]));
    }
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

//! Offloads of a network device, and its queues to send by: as the driver reports them, and set.
//!
//! The `SIOCETHTOOL` requests and structures are those of
//! `include/uapi/linux/ethtool.h`.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETH_SS_FEATURES: u32 = 4;
const ETHTOOL_GCHANNELS: u32 = 0x3c;
const ETHTOOL_SCHANNELS: u32 = 0x3d;
/// struct ethtool_channels: cmd, max_rx, max_tx, max_other, max_combined, and the counts of each.
const CHANNEL_WORDS: usize = 9;
/// Its `tx_count`.
const SENDING: usize = 6;
/// Bytes of a name (`ETH_GSTRING_LEN`).
const NAME_BYTES: usize = 32;
/// Features come in blocks of 32: available, requested, active, never changed.
const BLOCK_WORDS: usize = 4;
/// More than any kernel has. The kernel writes as many names as it has, whatever the
/// length says, so a greater count is refused before it may write.
const MOST_FEATURES: usize = 1024;

/// What a device can do, in the driver's own words, and whether it does.
struct Feature {
    name: String,
    /// Whether it can be switched.
    switchable: bool,
    /// Whether it is to be on.
    wanted: bool,
    active: bool,
}

/// Names of the features that are on, sorted, as `ethtool -k` spells them;
/// `device` is in the calling thread's network namespace.
pub fn active_features(device: &str) -> io::Result<Vec<String>> {
    named(device, |feature| feature.active)
}

/// Names of the features that the device could have and that are switched off, by somebody
/// or by its driver, sorted; `device` is in the calling thread's network namespace. What is
/// off because another one is off is not among them.
pub fn switched_off(device: &str) -> io::Result<Vec<String>> {
    named(device, |it| it.switchable && !it.wanted && !it.active)
}

fn named(device: &str, is_meant: fn(&Feature) -> bool) -> io::Result<Vec<String>> {
    let features = features(device)?.into_iter();
    let mut names: Vec<String> = features.filter(is_meant).map(|it| it.name).collect();
    names.sort();
    Ok(names)
}

fn features(device: &str) -> io::Result<Vec<Feature>> {
    let fd = any_socket()?;
    let request = |data: &mut [u32]| ethtool(&fd, device, data);

    // struct ethtool_sset_info: cmd, reserved, sset_mask (u64), data[].
    let mut info = [ETHTOOL_GSSET_INFO, 0, 0, 0, 0];
    let mask: [u8; 8] = (1u64 << ETH_SS_FEATURES).to_ne_bytes();
    info[2] = u32::from_ne_bytes([mask[0], mask[1], mask[2], mask[3]]);
    info[3] = u32::from_ne_bytes([mask[4], mask[5], mask[6], mask[7]]);
    request(&mut info)?;
    let count = bounded(info[4])?;

    // struct ethtool_gstrings: cmd, string_set, len, data[].
    let mut strings = vec![0; 3 + MOST_FEATURES * NAME_BYTES / 4];
    strings[0] = ETHTOOL_GSTRINGS;
    strings[1] = ETH_SS_FEATURES;
    strings[2] = count as u32;
    request(&mut strings)?;

    // struct ethtool_gfeatures: cmd, size (blocks), features[].
    let blocks = count.div_ceil(32);
    let mut bits = vec![0; 2 + blocks * BLOCK_WORDS];
    bits[0] = ETHTOOL_GFEATURES;
    bits[1] = blocks as u32;
    request(&mut bits)?;

    let names: Vec<u8> = strings[3..3 + count * NAME_BYTES / 4]
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .collect();
    let feature = |(at, name): (usize, &[u8])| {
        let bit = |word: usize| bits[2 + at / 32 * BLOCK_WORDS + word] >> (at % 32) & 1 == 1;
        let text = name.split(|byte| *byte == 0).next().unwrap_or_default();
        Feature {
            name: String::from_utf8_lossy(text).into_owned(),
            switchable: bit(0),
            wanted: bit(1),
            active: bit(2),
        }
    };
    let all = names.chunks(NAME_BYTES).enumerate().map(feature);
    // The kernel has bits without a name.
    Ok(all.filter(|it| !it.name.is_empty()).collect())
}

/// A count of features, where our buffers hold as many.
fn bounded(count: u32) -> io::Result<usize> {
    let count = count as usize;
    let told = format!("the kernel has {count} features of a device; {MOST_FEATURES} are known");
    let error = || io::Error::new(io::ErrorKind::InvalidData, told);
    (count <= MOST_FEATURES).then_some(count).ok_or_else(error)
}

/// Work that a device does for the stack, or the stack for itself, on many packets at
/// once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// Received segments are merged (GRO).
    Gro,
    /// The stack segments as late as it can (GSO).
    Gso,
    /// The device segments TCP (TSO).
    Tso,
    /// The device computes checksums of what is sent. Without it the stack also segments
    /// by itself.
    TxChecksum,
    /// The device checks checksums of what is received.
    RxChecksum,
}

impl Offload {
    /// The requests that read and set it: `ETHTOOL_GGRO`, `ETHTOOL_SGRO` and so on.
    fn requests(self) -> (u32, u32) {
        match self {
            Self::Gro => (0x2b, 0x2c),
            Self::Gso => (0x23, 0x24),
            Self::Tso => (0x1e, 0x1f),
            Self::TxChecksum => (0x16, 0x17),
            Self::RxChecksum => (0x14, 0x15),
        }
    }

    /// Whether it is on; `device` is in the calling thread's network namespace.
    pub fn is_on(self, device: &str) -> io::Result<bool> {
        // struct ethtool_value: cmd, data.
        let mut value = [self.requests().0, 0];
        ethtool(&any_socket()?, device, &mut value)?;
        Ok(value[1] != 0)
    }

    /// Switches it, as `ethtool -K` does.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` where the driver does not let it be changed.
    pub fn switch(self, device: &str, on: bool) -> io::Result<()> {
        ethtool(
            &any_socket()?,
            device,
            &mut [self.requests().1, u32::from(on)],
        )
    }
}

/// By how many queues of their own, not shared with receiving, a device sends; it is in the
/// calling thread's network namespace.
pub fn send_queues(device: &str) -> io::Result<u32> {
    Ok(channels(device)?[SENDING])
}

/// Sets by how many it sends, as `ethtool -L` does.
///
/// # Errors
///
/// `EOPNOTSUPP` where the driver has no such number, and `EINVAL` where it has not as many.
pub fn set_send_queues(device: &str, count: u32) -> io::Result<()> {
    let mut wanted = channels(device)?;
    wanted[0] = ETHTOOL_SCHANNELS;
    wanted[SENDING] = count;
    ethtool(&any_socket()?, device, &mut wanted)
}

fn channels(device: &str) -> io::Result<[u32; CHANNEL_WORDS]> {
    let mut all = [0; CHANNEL_WORDS];
    all[0] = ETHTOOL_GCHANNELS;
    ethtool(&any_socket()?, device, &mut all)?;
    Ok(all)
}

/// The requests go by a socket of any kind.
fn any_socket() -> io::Result<OwnedFd> {
    Ok(socket(
        AddressFamily::Inet,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC,
        None,
    )?)
}

fn ethtool(fd: &impl AsRawFd, device: &str, data: &mut [u32]) -> io::Result<()> {
    let mut request = request_for(device)?;
    request.ifr_ifru.ifru_data = data.as_mut_ptr().cast();
    // SAFETY: the name is terminated (shorter than its field), and the data
    // pointer leads to a live buffer whose length fields, set by the callers
    // in this module, say how much the kernel may write.
    let code = unsafe { libc::ioctl(fd.as_raw_fd(), libc::SIOCETHTOOL as _, &mut request) };
    Ok(Errno::result(code).map(drop)?)
}

/// A request that names a device; its name ends with a zero.
pub(crate) fn request_for(device: &str) -> io::Result<libc::ifreq> {
    // SAFETY: an all-zero `ifreq` is a valid value of this plain C structure.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if device.is_empty() || device.len() >= request.ifr_name.len() || device.contains('\0') {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_features_than_fit_are_refused_before_the_kernel_writes() {
        assert_eq!(bounded(64).unwrap(), 64);
        let error = bounded(MOST_FEATURES as u32 + 1).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}

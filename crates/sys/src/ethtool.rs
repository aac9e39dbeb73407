//! Offloads of a network device: as the driver reports them, and switched off.
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
const ETHTOOL_STXCSUM: u32 = 0x17;
const ETH_SS_FEATURES: u32 = 4;
/// Bytes of a name (`ETH_GSTRING_LEN`).
const NAME_BYTES: usize = 32;
/// Features come in blocks of 32: available, requested, active, never changed.
const BLOCK_WORDS: usize = 4;
/// More than any kernel has. The kernel writes as many names as it has, whatever the
/// length says, so a greater count is refused before it may write.
const MOST_FEATURES: usize = 1024;

/// Names of the features that are on, sorted, as `ethtool -k` spells them;
/// `device` is in the calling thread's network namespace.
pub fn active_features(device: &str) -> io::Result<Vec<String>> {
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
    let mut features = vec![0; 2 + blocks * BLOCK_WORDS];
    features[0] = ETHTOOL_GFEATURES;
    features[1] = blocks as u32;
    request(&mut features)?;

    let names: Vec<u8> = strings[3..3 + count * NAME_BYTES / 4]
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .collect();
    let mut active: Vec<String> = names
        .chunks(NAME_BYTES)
        .enumerate()
        .filter(|(at, _)| features[2 + at / 32 * BLOCK_WORDS + 2] >> (at % 32) & 1 == 1)
        .map(|(_, name)| {
            let text = name.split(|byte| *byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(text).into_owned()
        })
        // The kernel has bits without a name.
        .filter(|name| !name.is_empty())
        .collect();
    active.sort();
    Ok(active)
}

/// A count of features, where our buffers hold as many.
fn bounded(count: u32) -> io::Result<usize> {
    let count = count as usize;
    let told = format!("the kernel has {count} features of a device; {MOST_FEATURES} are known");
    let error = || io::Error::new(io::ErrorKind::InvalidData, told);
    (count <= MOST_FEATURES).then_some(count).ok_or_else(error)
}

/// Makes the stack compute the checksums of what `device` sends, as `ethtool -K
/// … tx off` does; the stack then also segments packets itself. `device` is one
/// of the calling thread's network namespace.
pub fn checksum_in_software(device: &str) -> io::Result<()> {
    // struct ethtool_value: cmd, data.
    ethtool(&any_socket()?, device, &mut [ETHTOOL_STXCSUM, 0])
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

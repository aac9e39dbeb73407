//! How full the maps are that programs on the way of packets use.

use std::collections::BTreeSet;
use std::io;

use aya::maps::{MapInfo, MapType};
use aya::programs::{ProgramInfo, loaded_programs};

use super::BpfError;
use super::bytecode;

/// Kinds of programs that packets or connections pass, by their numbers in `linux/bpf.h`: of
/// tc, XDP, control groups, tunnels by route, sockets, and netfilter.
const NETWORK: [u32; 13] = [3, 4, 6, 8, 9, 10, 11, 12, 13, 14, 16, 18, 32];
/// Most entries of a map that is counted.
const MOST_COUNTED: u32 = 1 << 21;

/// A map of programs that packets pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapFill {
    /// Its name, of which the kernel keeps 15 bytes.
    pub name: String,
    /// The number by which `bpftool map` shows it.
    pub id: u32,
    /// Whether an entry that is added to a full one takes the place of another.
    pub evicts: bool,
    /// Entries that it has; `None` where there may be more than two million, because to count
    /// them takes seconds.
    pub entries: Option<u64>,
    /// Entries that it may have.
    pub max_entries: u64,
}

/// The maps of this machine's kernel that are looked up by key and that programs use which
/// packets or connections pass, by their numbers.
///
/// # Errors
///
/// Also [`BpfError::is_forbidden`]: it takes CAP_SYS_ADMIN of the machine's own user namespace.
pub fn network_maps() -> Result<Vec<MapFill>, BpfError> {
    let mut ids = BTreeSet::new();
    for program in loaded_programs() {
        let failed = |error| BpfError::new("list", "the programs of the kernel", error);
        let program: ProgramInfo = program.map_err(failed)?;
        if !NETWORK.contains(&(program.program_type() as u32)) {
            continue;
        }
        // One that has ended meanwhile has none.
        ids.extend(program.map_ids().ok().flatten().unwrap_or_default());
    }
    let fills = ids.into_iter().filter_map(|id| fill(id).transpose());
    fills.collect()
}

/// `None` of a map of another kind, and of one that has gone meanwhile.
fn fill(id: u32) -> Result<Option<MapFill>, BpfError> {
    let Ok(info) = MapInfo::from_id(id) else {
        return Ok(None);
    };
    let failed = |error: io::Error| BpfError::new("read the map", &id.to_string(), error);
    let evicts = match info.map_type() {
        Ok(MapType::Hash | MapType::PerCpuHash | MapType::LpmTrie) => false,
        Ok(MapType::LruHash | MapType::LruPerCpuHash) => true,
        _ => return Ok(None),
    };
    let entries = match info.max_entries() <= MOST_COUNTED {
        true => Some(count(&info).map_err(failed)?),
        false => None,
    };
    Ok(Some(MapFill {
        name: info.name_as_str().unwrap_or_default().to_owned(),
        id,
        evicts,
        entries,
        max_entries: info.max_entries().into(),
    }))
}

/// Goes through the keys. One that is removed meanwhile has the kernel begin again, so it ends
/// where so many have been seen as there may be.
fn count(info: &MapInfo) -> io::Result<u64> {
    let map = info.fd().map_err(io::Error::other)?;
    let mut key: Option<Vec<u8>> = None;
    let mut count = 0;
    while count < u64::from(info.max_entries()) {
        let mut next = vec![0; info.key_size() as usize];
        match bytecode::next_key(&map, key.as_deref(), &mut next) {
            Ok(()) => count += 1,
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => break,
            Err(error) => return Err(error),
        }
        key = Some(next);
    }
    Ok(count)
}

//! eBPF: an object file's maps and programs, in the kernel.
//!
//! Nothing is pinned: what was loaded lives as long as its [`BpfObject`], or as
//! long as a device that runs a program of it.

use std::error::Error;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use aya::maps::lpm_trie::{Key, LpmTrie};
use aya::maps::{Array, HashMap, Map, MapData, PerCpuArray};
use aya::programs::SchedClassifier;
use aya::{Ebpf, EbpfLoader};

/// Why an object could not be loaded, or its maps could not be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} `{object}`: {}; {}", with_causes(source.as_ref()), remedy(*.refusal))]
pub struct BpfError {
    action: &'static str,
    object: String,
    source: Box<dyn Error + Send + Sync>,
    refusal: LoadRefusal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoadRefusal {
    Forbidden,
    Unsupported,
    Other,
}

impl BpfError {
    fn new(action: &'static str, object: &str, error: impl Error + Send + Sync + 'static) -> Self {
        let refusal = refusal(&error);
        Self {
            action,
            object: object.into(),
            source: Box::new(error),
            refusal,
        }
    }

    /// Whether the process lacks the right to load programs: CAP_BPF and
    /// CAP_NET_ADMIN of the machine's own user namespace.
    pub fn is_forbidden(&self) -> bool {
        self.refusal == LoadRefusal::Forbidden
    }

    /// Whether the kernel lacks eBPF, or a feature that the object uses.
    pub fn is_unsupported(&self) -> bool {
        self.refusal == LoadRefusal::Unsupported
    }
}

fn refusal(error: &(dyn Error + 'static)) -> LoadRefusal {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return match error.raw_os_error() {
                Some(libc::EPERM | libc::EACCES) => LoadRefusal::Forbidden,
                Some(libc::ENOSYS | libc::EINVAL | libc::EOPNOTSUPP) => LoadRefusal::Unsupported,
                _ => LoadRefusal::Other,
            };
        }
        cause = error.source();
    }
    LoadRefusal::Other
}

fn with_causes(error: &(dyn Error + Send + Sync + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        // Many library errors repeat their cause.
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

fn remedy(refusal: LoadRefusal) -> &'static str {
    match refusal {
        LoadRefusal::Forbidden => "run as root, outside of any user namespace",
        LoadRefusal::Unsupported => "this kernel may be older than what the program uses",
        LoadRefusal::Other => "is the program of this kernel's kind?",
    }
}

/// An object's maps, filled from here and by its programs.
#[derive(Debug)]
pub struct BpfObject {
    loaded: Ebpf,
}

impl BpfObject {
    /// Makes the maps of an object file. `constants` replace the values of
    /// global constants of the same name.
    pub fn load(file: &[u8], constants: &[(&str, u32)]) -> Result<Self, BpfError> {
        let mut loader = EbpfLoader::new();
        for (name, value) in constants {
            loader.override_global(name, value, true);
        }
        let loaded = loader.load(file);
        let loaded = loaded.map_err(|error| BpfError::new("load", "an eBPF object", error))?;
        Ok(Self { loaded })
    }

    /// A program for tc, loaded when first asked for.
    pub fn classifier(&mut self, name: &str) -> Result<BorrowedFd<'_>, BpfError> {
        let failed = |error| BpfError::new("load the program", name, error);
        let missing = || io::Error::other("the object has no such program");
        let program = self
            .loaded
            .program_mut(name)
            .ok_or_else(|| BpfError::new("find the program", name, missing()))?;
        let program: &mut SchedClassifier = program.try_into().map_err(failed)?;
        if program.fd().is_err() {
            program.load().map_err(failed)?;
        }
        program.fd().map(AsFd::as_fd).map_err(failed)
    }

    /// Sets an entry of a hash map.
    pub fn set<const K: usize, const V: usize>(
        &mut self,
        map: &str,
        key: [u8; K],
        value: [u8; V],
    ) -> Result<(), BpfError> {
        let failed = |error| BpfError::new("write the map", map, error);
        let mut hash = HashMap::<_, [u8; K], [u8; V]>::try_from(self.map(map)?).map_err(failed)?;
        hash.insert(key, value, 0).map_err(failed)
    }

    /// Sets an entry of a map that is looked up by the longest prefix: the
    /// first `bits` bits of `key`.
    pub fn set_prefix<const K: usize, const V: usize>(
        &mut self,
        map: &str,
        bits: u32,
        key: [u8; K],
        value: [u8; V],
    ) -> Result<(), BpfError> {
        let failed = |error| BpfError::new("write the map", map, error);
        let mut trie = LpmTrie::<_, [u8; K], [u8; V]>::try_from(self.map(map)?).map_err(failed)?;
        trie.insert(&Key::new(bits, key), value, 0).map_err(failed)
    }

    /// Sets an entry of an array.
    pub fn set_at<const V: usize>(
        &mut self,
        map: &str,
        index: u32,
        value: [u8; V],
    ) -> Result<(), BpfError> {
        let failed = |error| BpfError::new("write the map", map, error);
        let mut array = Array::<_, [u8; V]>::try_from(self.map(map)?).map_err(failed)?;
        array.set(index, value, 0).map_err(failed)
    }

    /// The sum over all CPUs of the counters at `index` of a per-CPU array.
    pub fn sum<const N: usize>(&self, map: &str, index: u32) -> Result<[u64; N], BpfError> {
        let failed = |error| BpfError::new("read the map", map, error);
        let data = self.loaded.map(map).ok_or_else(|| no_map(map))?;
        let array = PerCpuArray::<&MapData, [u64; N]>::try_from(data).map_err(failed)?;
        let values = array.get(&index, 0).map_err(failed)?;
        let mut sum = [0; N];
        for value in values.iter() {
            for (sum, value) in sum.iter_mut().zip(value) {
                *sum += value;
            }
        }
        Ok(sum)
    }

    fn map(&mut self, name: &str) -> Result<&mut Map, BpfError> {
        self.loaded.map_mut(name).ok_or_else(|| no_map(name))
    }
}

fn no_map(name: &str) -> BpfError {
    let missing = io::Error::other("the object has no such map");
    BpfError::new("find the map", name, missing)
}

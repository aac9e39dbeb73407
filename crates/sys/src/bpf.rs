//! eBPF: an object file's maps and programs, in the kernel.
//!
//! Nothing is pinned: what was loaded lives as long as its [`BpfObject`], or as
//! long as a device that runs a program of it.

mod bytecode;
mod insist;
mod maps;
mod netfilter;

use std::error::Error;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use aya::maps::lpm_trie::{Key, LpmTrie};
use aya::maps::{Array, HashMap, Map, MapData, PerCpuArray};
use aya::programs::tp_btf::BtfTracePointLink;
use aya::programs::{
    BtfTracePoint, CgroupAttachMode, CgroupSockAddr, Program, ProgramError, SchedClassifier,
};
use aya::{Btf, Ebpf, EbpfLoader};

pub use bytecode::Instruction;
use bytecode::ProgramKind;
use insist::{errno, insist};
pub use maps::{MapFill, network_maps};
pub use netfilter::AtNetfilter;

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
    match errno(error) {
        Some(libc::EPERM | libc::EACCES) => LoadRefusal::Forbidden,
        Some(libc::ENOSYS | libc::EINVAL | libc::EOPNOTSUPP) => LoadRefusal::Unsupported,
        _ => LoadRefusal::Other,
    }
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

/// The bytes of an object file, aligned as its headers are read.
#[repr(C, align(8))]
pub struct ObjectFile<T: ?Sized>(pub T);

/// An object's maps, filled from here and by its programs.
#[derive(Debug)]
pub struct BpfObject {
    loaded: Ebpf,
}

/// The bytes of a key and of its value.
pub type MapEntry<const K: usize, const V: usize> = ([u8; K], [u8; V]);

/// Programs that run at tracepoints, until this is dropped.
#[derive(Debug)]
pub struct AtTracepoints {
    _links: Vec<BtfTracePointLink>,
}

impl BpfObject {
    /// Makes the maps of an object file. `constants` replace the values of
    /// global constants of the same name.
    pub fn load(file: &[u8], constants: &[(&str, u32)]) -> Result<Self, BpfError> {
        Self::load_sized(file, constants, &[])
    }

    /// As [`load`](Self::load), with room for so many entries in the maps of these names.
    pub fn load_sized(
        file: &[u8],
        constants: &[(&str, u32)],
        entries: &[(&str, u32)],
    ) -> Result<Self, BpfError> {
        let mut loader = EbpfLoader::new();
        for (map, most) in entries {
            loader.map_max_entries(map, *most);
        }
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
        let program: &mut SchedClassifier = self.program(name)?.try_into().map_err(failed)?;
        if program.fd().is_err() {
            insist(|| program.load()).map_err(failed)?;
        }
        program.fd().map(AsFd::as_fd).map_err(failed)
    }

    /// Runs a program for sockets of the processes of a cgroup (version 2), for as long as
    /// this object lives.
    pub fn attach_to_cgroup(&mut self, name: &str, cgroup: &impl AsFd) -> Result<(), BpfError> {
        let failed = |error| BpfError::new("attach the program", name, error);
        let program: &mut CgroupSockAddr = self.program(name)?.try_into().map_err(failed)?;
        insist(|| program.load()).map_err(failed)?;
        // No flags: where a link attaches it, others may always be beside it.
        let attached = program.attach(cgroup, CgroupAttachMode::Single);
        attached.map(drop).map_err(failed)
    }

    /// Loads programs for tracepoints, each with the name of its own.
    ///
    /// # Errors
    ///
    /// Also [`BpfError::is_unsupported`] where the kernel has no type information (BTF), or no
    /// such tracepoint.
    pub fn load_for_tracepoints(&mut self, programs: &[(&str, &str)]) -> Result<(), BpfError> {
        let no_types = |error| BpfError {
            refusal: LoadRefusal::Unsupported,
            ..BpfError::new("read the types of the kernel for", "an eBPF object", error)
        };
        let types = Btf::from_sys_fs().map_err(no_types)?;
        for (name, tracepoint) in programs {
            let failed = |error| BpfError::new("load the program", name, error);
            let program: &mut BtfTracePoint = self.program(name)?.try_into().map_err(failed)?;
            insist(|| program.load(tracepoint, &types)).map_err(|error| {
                // What is not there, and what the verifier refuses: rights that are lacking are EPERM.
                let is_unsupported =
                    matches!(error, ProgramError::Btf(_)) || errno(&error) == Some(libc::EACCES);
                let failed = failed(error);
                match is_unsupported {
                    true => BpfError {
                        refusal: LoadRefusal::Unsupported,
                        ..failed
                    },
                    false => failed,
                }
            })?;
        }
        Ok(())
    }

    /// Runs programs that are loaded at their tracepoints.
    pub fn attach_to_tracepoints(&mut self, programs: &[&str]) -> Result<AtTracepoints, BpfError> {
        let attach = |name: &&str| {
            let failed = |error| BpfError::new("attach the program", name, error);
            let program: &mut BtfTracePoint = self.program(name)?.try_into().map_err(failed)?;
            let link = program.attach().map_err(failed)?;
            program.take_link(link).map_err(failed)
        };
        let links = programs.iter().map(attach).collect::<Result<_, _>>()?;
        Ok(AtTracepoints { _links: links })
    }

    /// Puts a program for tc at a position of an array of programs.
    pub fn set_program(&mut self, array: &str, index: u32, name: &str) -> Result<(), BpfError> {
        let program = self.classifier(name)?.try_clone_to_owned();
        let program = program.map_err(|error| BpfError::new("load the program", name, error))?;
        self.put_program(array, index, &program)
    }

    /// Has the kernel check instructions, and puts them at a position of an array of programs
    /// for tc. They name maps by [`map_fd`](Self::map_fd).
    ///
    /// # Errors
    ///
    /// What the kernel finds wrong with them, in its own words.
    pub fn add_program(
        &mut self,
        array: &str,
        index: u32,
        instructions: &[Instruction],
    ) -> Result<(), BpfError> {
        let program = bytecode::load(ProgramKind::Tc, instructions);
        let program =
            program.map_err(|error| BpfError::new("load a program for the map", array, error))?;
        self.put_program(array, index, &program)
    }

    fn put_program(&self, array: &str, index: u32, program: &impl AsFd) -> Result<(), BpfError> {
        let put = bytecode::put(&self.map_fd(array)?, index, program);
        put.map_err(|error| BpfError::new("write the map", array, error))
    }

    /// A map of prefixes, of programs, or of values that each CPU has of its own.
    pub fn map_fd(&self, name: &str) -> Result<BorrowedFd<'_>, BpfError> {
        match self.loaded.map(name) {
            Some(Map::LpmTrie(data) | Map::PerCpuArray(data) | Map::ProgramArray(data)) => {
                Ok(data.fd().as_fd())
            }
            _ => Err(no_map(name)),
        }
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
        insist(|| hash.insert(key, value, 0)).map_err(failed)
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
        insist(|| trie.insert(&Key::new(bits, key), value, 0)).map_err(failed)
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

    /// An entry of an array.
    pub fn at<const V: usize>(&self, map: &str, index: u32) -> Result<[u8; V], BpfError> {
        let failed = |error| BpfError::new("read the map", map, error);
        let data = self.loaded.map(map).ok_or_else(|| no_map(map))?;
        let array = Array::<&MapData, [u8; V]>::try_from(data).map_err(failed)?;
        array.get(&index, 0).map_err(failed)
    }

    /// Takes all entries out of a hash map.
    pub fn take<const K: usize, const V: usize>(
        &mut self,
        map: &str,
    ) -> Result<Vec<MapEntry<K, V>>, BpfError> {
        let failed = |error| BpfError::new("read the map", map, error);
        let mut hash = HashMap::<_, [u8; K], [u8; V]>::try_from(self.map(map)?).map_err(failed)?;
        let entries = hash.iter().collect::<Result<Vec<_>, _>>().map_err(failed)?;
        for (key, _) in &entries {
            hash.remove(key).map_err(failed)?;
        }
        Ok(entries)
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

    fn program(&mut self, name: &str) -> Result<&mut Program, BpfError> {
        let missing = || io::Error::other("the object has no such program");
        let program = self.loaded.program_mut(name);
        program.ok_or_else(|| BpfError::new("find the program", name, missing()))
    }

    fn map(&mut self, name: &str) -> Result<&mut Map, BpfError> {
        self.loaded.map_mut(name).ok_or_else(|| no_map(name))
    }
}

fn no_map(name: &str) -> BpfError {
    let missing = io::Error::other("the object has no such map");
    BpfError::new("find the map", name, missing)
}

//! What the library that loads object files has no way to ask bpf(2) for: programs that are made
//! instruction by instruction (RFC 9669), and the keys of a map of any shape.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::insist::insist;

/// One instruction, or half of one that is twice as long.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// What it does.
    pub code: u8,
    /// Where the result goes in the low four bits, what is read in the others.
    pub registers: u8,
    /// Of memory in bytes, or of a jump in instructions.
    pub offset: i16,
    /// A number.
    pub immediate: i32,
}

/// `union bpf_attr`, as far as `BPF_PROG_LOAD` reads it here.
#[repr(C)]
struct LoadAttributes {
    program_type: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    expected_attach_type: u32,
}

/// `union bpf_attr`, as far as `BPF_LINK_CREATE` reads it here.
#[repr(C)]
struct LinkAttributes {
    program: u32,
    target: u32,
    attach_type: u32,
    flags: u32,
    family: u32,
    hook: u32,
    priority: i32,
    netfilter_flags: u32,
}

/// What a program is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProgramKind {
    /// A packet at tc.
    Tc,
    /// A packet at a hook of netfilter.
    Netfilter,
}

/// `union bpf_attr`, as far as `BPF_MAP_UPDATE_ELEM` reads it here.
#[repr(C)]
struct UpdateAttributes {
    map: u32,
    _unused: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// `union bpf_attr`, as far as `BPF_MAP_GET_NEXT_KEY` reads it here.
#[repr(C)]
struct NextKeyAttributes {
    map: u32,
    _unused: u32,
    key: u64,
    next: u64,
}

const MAP_UPDATE_ELEM: libc::c_int = 2;
const MAP_GET_NEXT_KEY: libc::c_int = 4;
const PROG_LOAD: libc::c_int = 5;
const LINK_CREATE: libc::c_int = 28;
const SCHED_CLS: u32 = 3;
const NETFILTER: u32 = 32;
/// `BPF_NETFILTER`, which programs and links have.
const AT_NETFILTER: u32 = 45;
const LICENSE: &[u8] = b"GPL\0";
/// Bytes of what the verifier says.
const LOG: usize = 64 << 10;

/// Why instructions are no program, in the verifier's last words.
#[derive(Debug, thiserror::Error)]
#[error("{source}; of {count} instructions the verifier says: {said}")]
pub(super) struct VerifierError {
    count: usize,
    source: io::Error,
    said: String,
}

/// Has the kernel check instructions, and keep them as a program.
pub(super) fn load(
    kind: ProgramKind,
    instructions: &[Instruction],
) -> Result<OwnedFd, VerifierError> {
    let (program_type, expected_attach_type) = match kind {
        ProgramKind::Tc => (SCHED_CLS, 0),
        ProgramKind::Netfilter => (NETFILTER, AT_NETFILTER),
    };
    let mut attributes = LoadAttributes {
        program_type,
        // The kernel takes a million.
        instruction_count: instructions.len() as u32,
        instructions: instructions.as_ptr() as u64,
        license: LICENSE.as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
        name: *b"plumbline\0\0\0\0\0\0\0",
        interface: 0,
        expected_attach_type,
    };
    let source = match insist(|| call(PROG_LOAD, &attributes)) {
        Ok(program) => return Ok(owned(program)),
        Err(error) => error,
    };
    // Once more, with the reason.
    let mut log = vec![0_u8; LOG];
    attributes.log_level = 1;
    attributes.log_size = LOG as u32;
    attributes.log = log.as_mut_ptr() as u64;
    if let Ok(program) = call(PROG_LOAD, &attributes) {
        return Ok(owned(program));
    }
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(LOG);
    let said = String::from_utf8_lossy(&log[..end]);
    let mut last: Vec<&str> = said.lines().rev().take(3).collect();
    last.reverse();
    Err(VerifierError {
        count: instructions.len(),
        source,
        said: last.join("; "),
    })
}

fn owned(program: RawFd) -> OwnedFd {
    // SAFETY: the kernel has just made the descriptor, and nobody else has it.
    unsafe { OwnedFd::from_raw_fd(program) }
}

/// Puts a program at a position of an array of programs.
pub(super) fn put(array: &impl AsFd, index: u32, program: &impl AsFd) -> io::Result<()> {
    let value = program.as_fd().as_raw_fd() as u32;
    let attributes = UpdateAttributes {
        map: array.as_fd().as_raw_fd() as u32,
        _unused: 0,
        key: (&raw const index) as u64,
        value: (&raw const value) as u64,
        flags: 0,
    };
    call(MAP_UPDATE_ELEM, &attributes).map(drop)
}

/// Runs a program at a hook of netfilter in the calling thread's namespace, for packets of this
/// family, until what is given is dropped.
pub(super) fn link(
    program: &impl AsFd,
    family: libc::c_int,
    hook: u32,
    priority: i32,
) -> io::Result<OwnedFd> {
    let attributes = LinkAttributes {
        program: program.as_fd().as_raw_fd() as u32,
        target: 0,
        attach_type: AT_NETFILTER,
        flags: 0,
        family: family as u32,
        hook,
        priority,
        netfilter_flags: 0,
    };
    call(LINK_CREATE, &attributes).map(owned)
}

/// Writes the key behind `key`, or the first one, to `next`, which is as long as the map's keys.
///
/// # Errors
///
/// `ENOENT` behind the last one.
pub(super) fn next_key(map: &impl AsFd, key: Option<&[u8]>, next: &mut [u8]) -> io::Result<()> {
    let attributes = NextKeyAttributes {
        map: map.as_fd().as_raw_fd() as u32,
        _unused: 0,
        key: key.map_or(0, |key| key.as_ptr() as u64),
        next: next.as_mut_ptr() as u64,
    };
    call(MAP_GET_NEXT_KEY, &attributes).map(drop)
}

fn call<T>(command: libc::c_int, attributes: &T) -> io::Result<RawFd> {
    // SAFETY: `attributes` lives through the call and is as long as is said. What it points
    // to lives in the callers, is as long as it says there, and is written to only where it
    // is a buffer of the caller's own.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_ref(attributes),
            size_of::<T>(),
        )
    };
    match answer {
        -1 => Err(io::Error::last_os_error()),
        // A descriptor, or zero.
        answer => Ok(answer as RawFd),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_laid_out_as_the_kernel_reads_them() {
        assert_eq!(size_of::<Instruction>(), 8);
        assert_eq!(std::mem::offset_of!(LoadAttributes, name), 48);
        assert_eq!(size_of::<LoadAttributes>(), 72);
        assert_eq!(std::mem::offset_of!(LinkAttributes, family), 16);
        assert_eq!(size_of::<LinkAttributes>(), 32);
        assert_eq!(size_of::<UpdateAttributes>(), 32);
        assert_eq!(size_of::<NextKeyAttributes>(), 24);
    }

    /// The answer may not be a register that nothing was written to.
    #[test]
    fn a_program_that_is_wrong_is_refused_with_the_reason() {
        let exit = Instruction {
            code: 0x95,
            registers: 0,
            offset: 0,
            immediate: 0,
        };
        let error = load(ProgramKind::Tc, &[exit])
            .expect_err("wrong")
            .to_string();
        let is_forbidden = error.contains("not permitted");
        assert!(is_forbidden || error.contains("!read_ok"), "{error}");
    }
}

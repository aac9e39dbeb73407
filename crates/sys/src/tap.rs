//! Taking the frames of a device out of the kernel and putting others in, as
//! libpcap does it: a ring in memory that both share (packet_mmap.rst of the
//! kernel), a filter that lets only incoming frames pass, and send(2).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::{packet, sockopt};

/// Slots of the ring. libpcap asks for as many as 8 MiB hold of the longest
/// frame, and gives each a block of pages.
const SLOTS: usize = 128;
/// Bytes of a slot: the next power of two to a frame of 64 KiB with its header.
const SLOT_BYTES: usize = 1 << 17;

/// A device whose incoming frames can be taken, and into which others can be
/// put, as if they had come in there.
#[derive(Debug)]
pub struct Tap {
    fd: OwnedFd,
    /// Whether its ring was mapped.
    is_mapped: AtomicBool,
}

impl Tap {
    /// Begins to take the frames that come in at the device with this index in
    /// the network namespace of the calling thread.
    ///
    /// # Errors
    ///
    /// `EPERM` without `CAP_NET_RAW` in that namespace; `ENODEV` without such a
    /// device; `ENOMEM` without 16 MiB for the ring; `EAFNOSUPPORT` on a kernel
    /// without packet sockets.
    pub fn open(device: u32) -> io::Result<Self> {
        let fd = packet::open()?;
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        let ring = libc::tpacket_req {
            tp_block_size: SLOT_BYTES as u32,
            tp_block_nr: SLOTS as u32,
            tp_frame_size: SLOT_BYTES as u32,
            tp_frame_nr: SLOTS as u32,
        };
        sockopt::set_integer(&fd, libc::SOL_PACKET, libc::PACKET_VERSION, version)?;
        // SAFETY: the value points to nothing.
        unsafe { sockopt::set(&fd, libc::SOL_PACKET, libc::PACKET_RX_RING, &ring)? };
        take_incoming_only(&fd)?;
        packet::bind(&fd, device)?;
        Ok(Self {
            fd,
            is_mapped: AtomicBool::new(false),
        })
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Attaches the program that libpcap compiles of `inbound`: a tap takes
/// nothing that the device itself sends.
fn take_incoming_only(fd: &OwnedFd) -> io::Result<()> {
    let step = |code: u32, jt, jf, k| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let kind = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE) as u32;
    let mut program = [
        step(libc::BPF_LD | libc::BPF_H | libc::BPF_ABS, 0, 0, kind),
        step(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            0,
            1,
            u32::from(libc::PACKET_OUTGOING),
        ),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
    ];
    let program = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the array that the value points to lives to the end of this
    // function.
    unsafe { sockopt::set(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program) }
}

/// The ring of a tap, in the process that maps it. Makes system calls only.
#[derive(Debug)]
pub struct TapRing {
    first: *mut u8,
    next: usize,
}

impl TapRing {
    /// Maps the ring of a tap; `None` when the kernel refuses, or when the ring was
    /// mapped before. It stays mapped until the process ends. Of several processes
    /// that share a tap, one alone should read its ring.
    pub fn map(tap: &Tap) -> Option<Self> {
        if tap.is_mapped.swap(true, Ordering::Relaxed) {
            return None;
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let length = SLOTS * SLOT_BYTES;
        // SAFETY: asks for memory at a place of the kernel's choice.
        let first = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                protection,
                libc::MAP_SHARED,
                tap.fd.as_raw_fd(),
                0,
            )
        };
        (first != libc::MAP_FAILED).then_some(Self {
            first: first.cast(),
            next: 0,
        })
    }

    fn slot(&self) -> *mut u8 {
        // SAFETY: `next` is below the number of slots, all of which are mapped.
        unsafe { self.first.add(self.next * SLOT_BYTES) }
    }

    /// The first field of a slot, which says whose it is.
    fn status(&self) -> &AtomicU32 {
        // SAFETY: the slot is mapped as long as the process lives, aligned to
        // pages, and shared with the kernel, which both sides access this field
        // of atomically.
        unsafe { AtomicU32::from_ptr(self.slot().cast()) }
    }

    /// The oldest frame that was not yet [`release`](Self::release)d, from its
    /// Ethernet header on; `None` when there is none.
    pub fn frame(&self) -> Option<&[u8]> {
        if self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the kernel has given the slot to us, with this structure at
        // its start, and leaves it alone until it is given back; that needs
        // `self` exclusively.
        let header = unsafe { &*self.slot().cast::<libc::tpacket2_hdr>() };
        let start = usize::from(header.tp_mac);
        let length = (header.tp_snaplen as usize).min(SLOT_BYTES.saturating_sub(start));
        // SAFETY: start and length are within the slot.
        Some(unsafe { std::slice::from_raw_parts(self.slot().add(start), length) })
    }

    /// Gives the oldest frame back to the kernel.
    pub fn release(&mut self) {
        self.status()
            .store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % SLOTS;
    }
}

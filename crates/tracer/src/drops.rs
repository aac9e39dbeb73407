//! A program at the kernel's tracepoint for packets that are dropped (`bpf/drops.c`).

use plumbline_protocol::DroppedDatagrams;
use plumbline_sys::bpf::{AtTracepoints, BpfObject, ObjectFile};

use crate::drop_reason::DropReasons;
use crate::layout::u32_at;
use crate::tracer::{TracerError, loaded, missing};

static OBJECT: &ObjectFile<[u8]> = &ObjectFile(*include_bytes!("../bpf/drops.o"));

/// Sees which datagrams of a probe the kernel drops, anywhere on this machine.
#[derive(Debug)]
pub struct DropWatch {
    object: BpfObject,
    reasons: DropReasons,
    running: Option<AtTracepoints>,
}

impl DropWatch {
    /// Loads the program. It runs only between [`begin`](Self::begin) and [`end`](Self::end).
    ///
    /// # Errors
    ///
    /// [`TracerError::Unsupported`] without the right to do so, and on kernels without type
    /// information.
    pub fn load() -> Result<Self, TracerError> {
        let reasons = DropReasons::of_this_kernel();
        Ok(Self {
            object: loaded(OBJECT, &[reasons.program()]).map_err(missing)?,
            reasons,
            running: None,
        })
    }

    /// Forgets what was seen before, and watches datagrams whose payloads have so many bytes and
    /// begin with `key`.
    ///
    /// # Errors
    ///
    /// Maps that cannot be written.
    pub fn begin(&mut self, key: [u8; 8], payload_bytes: u32) -> Result<(), TracerError> {
        self.running = None;
        self.object.take::<16, 8>("drops")?;
        let mut probe = [0; 16];
        probe[..8].copy_from_slice(&key);
        probe[8..].copy_from_slice(&u64::from(payload_bytes).to_ne_bytes());
        self.object.set_at("probes", 0, probe)?;
        let running = self
            .object
            .attach_to_tracepoints(&[self.reasons.program().0]);
        self.running = Some(running.map_err(missing)?);
        Ok(())
    }

    /// Ends the program, and gives what it saw being dropped.
    ///
    /// # Errors
    ///
    /// Maps that cannot be read.
    pub fn end(&mut self) -> Result<Vec<DroppedDatagrams>, TracerError> {
        self.running = None;
        let drops = self.object.take::<16, 8>("drops")?;
        let drops = drops.iter().map(|(place, packets)| {
            let reason = u32_at(place, 8);
            DroppedDatagrams {
                namespace: u32_at(place, 0),
                device: u32_at(place, 4),
                reason: self.reasons.name(reason),
                packets: u64::from_ne_bytes(*packets),
            }
        });
        Ok(drops.collect())
    }
}

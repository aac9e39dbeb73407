//! Programs at the kernel's tracepoints, which follow requests (`bpf/journey.c`).

use plumbline_protocol::{Followed, TracedDrop, Traces};
use plumbline_sys::bpf::{AtNetfilter, AtTracepoints, BpfError, BpfObject, ObjectFile};

use crate::at_sockets::AtSockets;
use crate::drop_reason::DropReasons;
use crate::layout;

static OBJECT: &ObjectFile<[u8]> = &ObjectFile(*include_bytes!("../bpf/journey.o"));

/// The programs that run on every kernel, with their tracepoints.
const PROGRAMS: &[(&str, &str)] = &[
    ("on_queued", "net_dev_queue"),
    ("on_transmitted", "net_dev_start_xmit"),
    ("on_arrived", "netif_rx"),
    ("on_received", "netif_receive_skb"),
    ("on_routed", "fib_table_lookup"),
    ("on_routed_v6", "fib6_table_lookup"),
    ("on_delivered", "tcp_probe"),
    ("on_consumed", "consume_skb"),
];

/// Why nothing could be followed.
#[derive(Debug, thiserror::Error)]
pub enum TracerError {
    /// The kernel or the rights lack something.
    #[error("{needs}")]
    Unsupported {
        /// What is missing, and how to get it.
        needs: String,
    },
    /// The programs could not be used.
    #[error(transparent)]
    Programs(#[from] BpfError),
}

/// The programs, loaded. They run only between [`begin`](Self::begin) and [`end`](Self::end).
#[derive(Debug)]
pub struct Tracer {
    object: BpfObject,
    at_sockets: AtSockets,
    programs: Vec<&'static str>,
    reasons: DropReasons,
    running: Option<AtTracepoints>,
}

impl Tracer {
    /// Loads the programs, with these at sockets or with what the kernel has of them.
    ///
    /// # Errors
    ///
    /// [`TracerError::Unsupported`] without the right to do so, and on kernels without type
    /// information or one of the tracepoints that every journey needs.
    pub fn load(most: AtSockets) -> Result<Self, TracerError> {
        let mut at_sockets = most;
        let reasons = match most {
            AtSockets::Linux5_10 => DropReasons::default(),
            _ => DropReasons::of_this_kernel(),
        };
        let at_drops = reasons.program();
        let (object, programs) = loop {
            let programs = [at_sockets.programs(), PROGRAMS, &[at_drops]].concat();
            let object = loaded(OBJECT, &programs);
            let is_unsupported = object.as_ref().is_err_and(BpfError::is_unsupported);
            match at_sockets.of_earlier() {
                Some(earlier) if is_unsupported => at_sockets = earlier,
                _ => break (object.map_err(missing)?, programs),
            }
        };
        Ok(Self {
            object,
            at_sockets,
            programs: programs.into_iter().map(|(name, _)| name).collect(),
            reasons,
            running: None,
        })
    }

    /// Runs the programs while `work` is done; gives what they saw.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin) and [`end`](Self::end).
    pub fn watch<T>(
        &mut self,
        followed: &Followed,
        work: impl FnOnce() -> T,
    ) -> Result<(T, Traces), TracerError> {
        self.begin(followed)?;
        let done = work();
        Ok((done, self.end()?))
    }

    /// Has netfilter's hooks in the calling thread's namespace seen apart, where journeys
    /// lead through it, until what is given is dropped.
    ///
    /// # Errors
    ///
    /// [`TracerError::Unsupported`] before Linux 6.4, and where it was built without
    /// `CONFIG_NETFILTER_BPF_LINK`.
    pub fn split_netfilter(&self, is_v6: bool) -> Result<AtNetfilter, TracerError> {
        let stamped = self.object.stamp_at_netfilter("filtering", is_v6);
        stamped.map_err(|error| match error.is_unsupported() {
            true => TracerError::Unsupported {
                needs: format!(
                    "programs at netfilter's hooks need Linux 6.4 with CONFIG_NETFILTER_BPF_LINK: \
                     {error}"
                ),
            },
            false => error.into(),
        })
    }

    /// Forgets what was seen before, and runs the programs.
    ///
    /// # Errors
    ///
    /// Maps that cannot be written, and tracepoints that are not there.
    pub fn begin(&mut self, followed: &Followed) -> Result<(), TracerError> {
        self.running = None;
        self.forget(followed)?;
        let running = self.object.attach_to_tracepoints(&self.programs);
        self.running = Some(running.map_err(missing)?);
        Ok(())
    }

    /// Ends the programs, and gives what they saw.
    ///
    /// # Errors
    ///
    /// Maps that cannot be read.
    pub fn end(&mut self) -> Result<Traces, TracerError> {
        self.running = None;
        Ok(self.traces()?)
    }

    /// Whatever was seen before, and the journey that was under way.
    fn forget(&mut self, followed: &Followed) -> Result<(), BpfError> {
        self.object.take::<8, { layout::ROUTE }>("routes")?;
        self.object.take::<16, 8>("drops")?;
        for fate in 0..layout::FATES {
            self.object.set_at("fates", fate, [0; 8])?;
        }
        self.object.take::<4, 4>("inside")?;
        for namespace in &followed.inside {
            self.object.set("inside", namespace.to_ne_bytes(), [1; 4])?;
        }
        self.object.set_at("orders", 0, layout::order(followed))?;
        self.object
            .set_at("journeys", 0, layout::journey(followed, self.at_sockets))
    }

    fn traces(&mut self) -> Result<Traces, BpfError> {
        let routes = self.object.take::<8, { layout::ROUTE }>("routes")?;
        let drops = self.object.take::<16, 8>("drops")?;
        let fate =
            |at| -> Result<u64, BpfError> { Ok(u64::from_ne_bytes(self.object.at("fates", at)?)) };
        let drops = drops.iter().filter_map(|(key, packets)| {
            let (namespace, device, hook, reason) = layout::dropped(key)?;
            Some(TracedDrop {
                namespace,
                device,
                hook,
                reason: self.reasons.name(reason),
                packets: u64::from_ne_bytes(*packets),
            })
        });
        let (answered, answered_ns) = layout::answered(&self.object.at("journeys", 0)?);
        Ok(Traces {
            answered,
            answered_ns,
            routes: routes.iter().map(|(_, it)| layout::route(it)).collect(),
            drops: drops.collect(),
            too_long: fate(layout::TOO_LONG)?,
            lost: fate(layout::LOST)?,
            no_room: fate(layout::NO_ROOM)?,
        })
    }
}

/// An object whose programs are loaded, each for its tracepoint.
pub(crate) fn loaded(
    file: &ObjectFile<[u8]>,
    programs: &[(&str, &str)],
) -> Result<BpfObject, BpfError> {
    let mut object = BpfObject::load(&file.0, &[])?;
    object.load_for_tracepoints(programs)?;
    Ok(object)
}

/// Says what is missing, where something is.
pub(crate) fn missing(error: BpfError) -> TracerError {
    let needs = match (error.is_forbidden(), error.is_unsupported()) {
        (true, _) => {
            "programs at the kernel's tracepoints take root, or CAP_BPF and CAP_PERFMON of the \
             machine's own user namespace, and no seccomp profile that forbids bpf(2)"
        }
        (_, true) => {
            "it needs a kernel with type information (CONFIG_DEBUG_INFO_BTF) and, to follow \
             requests, the tracepoints of Linux 5.10"
        }
        _ => return error.into(),
    };
    TracerError::Unsupported {
        needs: format!("{needs}: {error}"),
    }
}

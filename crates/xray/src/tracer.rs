//! Programs at the kernel's tracepoints, which follow requests (`bpf/journey.c`).

mod layout;

use plumbline_sys::bpf::{BpfError, BpfObject, ObjectFile};

use crate::btf;
use crate::error::XrayError;
use crate::traces::{Followed, TracedDrop, Traces};

static OBJECT: &ObjectFile<[u8]> = &ObjectFile(*include_bytes!("../bpf/journey.o"));

/// Each program with its tracepoint.
const PROGRAMS: &[(&str, &str)] = &[
    ("on_sent", "tcp_sendmsg_locked"),
    ("on_queued", "net_dev_queue"),
    ("on_transmitted", "net_dev_start_xmit"),
    ("on_arrived", "netif_rx"),
    ("on_received", "netif_receive_skb"),
    ("on_routed", "fib_table_lookup"),
    ("on_routed_v6", "fib6_table_lookup"),
    ("on_delivered", "tcp_probe"),
    ("on_ready", "sk_data_ready"),
    ("on_read", "sock_recv_length"),
    ("on_consumed", "consume_skb"),
    ("on_dropped", "kfree_skb"),
];

/// The programs, loaded. They run only within [`watch`](Self::watch).
#[derive(Debug)]
pub(crate) struct Tracer(BpfObject);

impl Tracer {
    /// Loads the programs.
    ///
    /// # Errors
    ///
    /// [`XrayError::Unsupported`] without the right to do so, and on kernels without type
    /// information or one of the tracepoints.
    pub(crate) fn load() -> Result<Self, XrayError> {
        let loaded = || -> Result<Self, BpfError> {
            let mut object = BpfObject::load(&OBJECT.0, &[])?;
            object.load_for_tracepoints(PROGRAMS)?;
            Ok(Self(object))
        };
        loaded().map_err(missing)
    }

    /// Runs the programs while `work` is done; gives what they saw.
    ///
    /// # Errors
    ///
    /// Maps that cannot be read or written, and tracepoints that are not there.
    pub(crate) fn watch<T>(
        &mut self,
        followed: Followed,
        work: impl FnOnce() -> T,
    ) -> Result<(T, Traces), XrayError> {
        self.forget()?;
        self.0.set_at("orders", 0, layout::order(followed))?;
        let names: Vec<&str> = PROGRAMS.iter().map(|(name, _)| *name).collect();
        let attached = self.0.attach_to_tracepoints(&names).map_err(missing)?;
        let done = work();
        drop(attached);
        Ok((done, self.traces()?))
    }

    /// Whatever was seen before, and the journey that was under way.
    fn forget(&mut self) -> Result<(), BpfError> {
        self.0.take::<8, { layout::ROUTE }>("routes")?;
        self.0.take::<16, 8>("drops")?;
        for fate in 0..layout::FATES {
            self.0.set_at("fates", fate, [0; 8])?;
        }
        self.0.set_at("journeys", 0, [0; layout::JOURNEY])
    }

    fn traces(&mut self) -> Result<Traces, BpfError> {
        let routes = self.0.take::<8, { layout::ROUTE }>("routes")?;
        let drops = self.0.take::<16, 8>("drops")?;
        let fate =
            |at| -> Result<u64, BpfError> { Ok(u64::from_ne_bytes(self.0.at("fates", at)?)) };
        let drops = drops.iter().filter_map(|(key, packets)| {
            let (namespace, device, hook, reason) = layout::dropped(key)?;
            Some(TracedDrop {
                namespace,
                device,
                hook,
                reason: btf::enumerator("skb_drop_reason", reason)
                    .unwrap_or_else(|| format!("reason {reason}")),
                packets: u64::from_ne_bytes(*packets),
            })
        });
        Ok(Traces {
            routes: routes.iter().map(|(_, it)| layout::route(it)).collect(),
            drops: drops.collect(),
            too_long: fate(layout::TOO_LONG)?,
            lost: fate(layout::LOST)?,
            no_room: fate(layout::NO_ROOM)?,
        })
    }
}

/// Says what is missing, where something is.
fn missing(error: BpfError) -> XrayError {
    let needs = match (error.is_forbidden(), error.is_unsupported()) {
        (true, _) => "programs at the kernel's tracepoints take root",
        (_, true) => {
            "it needs a kernel with type information (CONFIG_DEBUG_INFO_BTF) and the tracepoint \
             tcp_sendmsg_locked, which Linux has as of 6.16"
        }
        _ => return error.into(),
    };
    XrayError::Unsupported {
        needs: format!("{needs}: {error}"),
    }
}

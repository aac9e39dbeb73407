//! What was done to the nodes and pods, so that it can be undone in reverse.

use std::net::IpAddr;
use std::os::fd::AsFd;
use std::panic::resume_unwind;
use std::sync::Arc;

use plumbline_sys::cpu::ProcessTime;
use plumbline_sys::forwarder::Forwarder;
use plumbline_sys::netlink::{
    Datapath, EspPolicy, EspState, LinkSpec, NeighbourSpec, NetlinkError, RouteSpec, RuleSpec,
    XfrmSocket,
};
use plumbline_sys::sysctl;

use crate::error::LabError;
use crate::place::Place;

/// The group of the devices that a network made, as opposed to those of the
/// underlay.
const GROUP: u32 = 1;

/// Does what a network asks for, and remembers how to undo it.
#[derive(Debug, Default)]
pub struct Journal {
    /// What was set, in order.
    settings: Vec<(Arc<Place>, JournalEntry)>,
    /// Places where devices were made, each once, in order.
    devices: Vec<Arc<Place>>,
    /// Processes that forward, each killed when dropped.
    forwarders: Vec<Forwarder>,
}

#[derive(Debug)]
enum JournalEntry {
    Address {
        device: u32,
        address: IpAddr,
        prefix: u8,
    },
    Route(RouteSpec),
    Rule(RuleSpec),
    Neighbour(NeighbourSpec),
    Datapath(Arc<Datapath>),
    Hooks {
        device: u32,
    },
    /// A device that was there before, with the MTU that it had.
    Adopted {
        device: u32,
        mtu: u32,
    },
    /// Keys with the values that they had.
    Sysctls(Vec<(String, String)>),
    State(Arc<XfrmSocket>, EspState),
    Policy(Arc<XfrmSocket>, EspPolicy),
    Other(Box<dyn Undo>),
}

/// Something that a network did otherwise than through the journal.
pub trait Undo: std::fmt::Debug + Send + Sync {
    /// Takes it back, without stopping at an error, and gives the errors.
    fn undo(&mut self) -> Vec<LabError>;
}

impl Journal {
    /// Makes a device in `place` and gives its index there.
    pub fn link(
        &mut self,
        place: &Arc<Place>,
        name: &str,
        spec: LinkSpec<'_>,
    ) -> Result<u32, LabError> {
        self.link_inside(place, place, spec)?;
        place.index(name)
    }

    /// Makes a device by a request in `place` that puts it `inside` another.
    pub fn link_inside(
        &mut self,
        place: &Arc<Place>,
        inside: &Arc<Place>,
        spec: LinkSpec<'_>,
    ) -> Result<(), LabError> {
        let added = place.netlink().add_link(spec.group(GROUP));
        added.map_err(|error| place.failed(error))?;
        if !self.devices.iter().any(|known| Arc::ptr_eq(known, inside)) {
            self.devices.push(Arc::clone(inside));
        }
        Ok(())
    }

    /// Makes a device as [`link`](Self::link) does, or takes the one of that
    /// name that the kernel has made itself; brings it up with this MTU, and
    /// gives its index.
    pub fn adopt(
        &mut self,
        place: &Arc<Place>,
        name: &str,
        spec: LinkSpec<'_>,
        mtu: u32,
    ) -> Result<u32, LabError> {
        let Ok(there) = place.netlink().link(name) else {
            return self.link(place, name, spec.mtu(mtu).up());
        };
        let device = there.index;
        self.remember(
            place,
            JournalEntry::Adopted {
                device,
                mtu: there.mtu,
            },
        );
        let netlink = place.netlink();
        netlink
            .set_link_mtu(device, mtu)
            .and_then(|()| netlink.set_link_up(device, true))
            .map_err(|error| place.failed(error))?;
        Ok(device)
    }

    /// Gives a device an address.
    pub fn address(
        &mut self,
        place: &Arc<Place>,
        device: u32,
        address: IpAddr,
        prefix: u8,
    ) -> Result<(), LabError> {
        let added = place.netlink().add_address(device, address, prefix);
        added.map_err(|error| place.failed(error))?;
        let setting = JournalEntry::Address {
            device,
            address,
            prefix,
        };
        self.remember(place, setting);
        Ok(())
    }

    /// Adds a route.
    pub fn route(&mut self, place: &Arc<Place>, route: RouteSpec) -> Result<(), LabError> {
        let added = place.netlink().add_route(&route);
        added.map_err(|error| place.failed(error))?;
        self.remember(place, JournalEntry::Route(route));
        Ok(())
    }

    /// Adds a rule.
    pub fn rule(&mut self, place: &Arc<Place>, rule: RuleSpec) -> Result<(), LabError> {
        let added = place.netlink().add_rule(&rule);
        added.map_err(|error| place.failed(error))?;
        self.remember(place, JournalEntry::Rule(rule));
        Ok(())
    }

    /// Adds an IPsec state; `xfrm` was opened in `place`.
    pub fn esp_state(
        &mut self,
        place: &Arc<Place>,
        xfrm: &Arc<XfrmSocket>,
        state: EspState,
    ) -> Result<(), LabError> {
        xfrm.add_state(&state)
            .map_err(|error| place.failed(error))?;
        self.remember(place, JournalEntry::State(Arc::clone(xfrm), state));
        Ok(())
    }

    /// Adds an IPsec policy; `xfrm` was opened in `place`.
    pub fn esp_policy(
        &mut self,
        place: &Arc<Place>,
        xfrm: &Arc<XfrmSocket>,
        policy: EspPolicy,
    ) -> Result<(), LabError> {
        xfrm.add_policy(&policy)
            .map_err(|error| place.failed(error))?;
        self.remember(place, JournalEntry::Policy(Arc::clone(xfrm), policy));
        Ok(())
    }

    /// Sets sysctls of a place, to be set back in the end.
    pub fn sysctls(
        &mut self,
        place: &Arc<Place>,
        settings: &[(String, String)],
    ) -> Result<(), LabError> {
        let old = set_sysctls(place, settings)?;
        self.remember(place, JournalEntry::Sysctls(old));
        Ok(())
    }

    /// Adds a neighbour or forwarding entry.
    pub fn neighbour(
        &mut self,
        place: &Arc<Place>,
        neighbour: NeighbourSpec,
    ) -> Result<(), LabError> {
        let added = place.netlink().add_neighbour(&neighbour);
        added.map_err(|error| place.failed(error))?;
        self.remember(place, JournalEntry::Neighbour(neighbour));
        Ok(())
    }

    /// Has an eBPF program see what comes in through a device that has no tc
    /// hooks yet.
    pub fn ingress_program(
        &mut self,
        place: &Arc<Place>,
        device: u32,
        name: &str,
        program: &impl AsFd,
    ) -> Result<(), LabError> {
        let netlink = place.netlink();
        let added = netlink.add_hooks(device);
        added.map_err(|error| place.failed(error))?;
        self.remember(place, JournalEntry::Hooks { device });
        let attached = netlink.add_ingress_program(device, name, program);
        attached.map_err(|error| place.failed(error))
    }

    /// Remembers what a network did in `place` by other means.
    pub fn undo_by(&mut self, place: &Arc<Place>, undo: Box<dyn Undo>) {
        self.remember(place, JournalEntry::Other(undo));
    }

    /// Sets sysctls of a device that this journal made. They need no undoing:
    /// they go with the device.
    pub fn device_sysctls(
        &mut self,
        place: &Arc<Place>,
        settings: &[(String, String)],
    ) -> Result<(), LabError> {
        set_sysctls(place, settings).map(|_| ())
    }

    /// Makes a datapath of Open vSwitch.
    pub fn datapath(&mut self, place: &Arc<Place>, name: &str) -> Result<Arc<Datapath>, LabError> {
        let created = place.namespace.run(|| Datapath::create(name))?;
        let datapath = Arc::new(created.map_err(|error| place.failed(error))?);
        self.remember(place, JournalEntry::Datapath(Arc::clone(&datapath)));
        Ok(datapath)
    }

    /// Keeps a process that forwards packets of the network.
    pub fn forwarder(&mut self, forwarder: Forwarder) {
        self.forwarders.push(forwarder);
    }

    /// CPU time of the network's own processes since they were started.
    pub fn cpu_time(&self) -> Result<ProcessTime, LabError> {
        let mut sum = ProcessTime::default();
        for forwarder in &self.forwarders {
            let time = forwarder.cpu_time().map_err(LabError::Forwarder)?;
            sum.user_ns += time.user_ns;
            sum.system_ns += time.system_ns;
        }
        Ok(sum)
    }

    /// Undoes everything, last first, without stopping at an error, and
    /// gives the errors. A second call does nothing.
    pub fn undo(&mut self) -> Vec<LabError> {
        let mut errors = Vec::new();
        while let Some((place, setting)) = self.settings.pop() {
            errors.extend(setting.undo(&place));
        }
        // A device of theirs goes with them. All are told before one is waited for.
        self.forwarders.iter().for_each(Forwarder::kill);
        self.forwarders.clear();
        // Devices go last, all of a place at once, and all places at the same
        // time: what takes long is that the kernel waits, and it waits for
        // several requests together.
        let places = std::mem::take(&mut self.devices);
        let deleted = std::thread::scope(|scope| {
            let delete = |place| scope.spawn(move || delete_devices(place));
            let threads: Vec<_> = places.iter().map(delete).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
                .collect::<Vec<_>>()
        });
        for (place, result) in places.iter().zip(deleted) {
            errors.extend(result.err().map(|error| place.failed(error)));
        }
        errors
    }

    fn remember(&mut self, place: &Arc<Place>, setting: JournalEntry) {
        self.settings.push((Arc::clone(place), setting));
    }
}

impl JournalEntry {
    fn undo(self, place: &Place) -> Vec<LabError> {
        let netlink = place.netlink();
        let undone = match self {
            Self::Address {
                device,
                address,
                prefix,
            } => netlink.delete_address(device, address, prefix),
            Self::Route(route) => netlink.delete_route(&route),
            Self::Rule(rule) => netlink.delete_rule(&rule),
            Self::Datapath(datapath) => datapath.delete(),
            Self::Neighbour(neighbour) => netlink.delete_neighbour(&neighbour),
            Self::Adopted { device, mtu } => netlink
                .set_link_up(device, false)
                .and_then(|()| netlink.set_link_mtu(device, mtu)),
            Self::State(xfrm, state) => xfrm.delete_state(&state),
            Self::Policy(xfrm, policy) => xfrm.delete_policy(&policy),
            Self::Hooks { device } => netlink.delete_hooks(device),
            Self::Sysctls(old) => return set_sysctls(place, &old).err().into_iter().collect(),
            Self::Other(mut undo) => return undo.undo(),
        };
        undone
            .err()
            .map(|error| place.failed(error))
            .into_iter()
            .collect()
    }
}

/// Gives the values that the keys had before.
fn set_sysctls(
    place: &Place,
    settings: &[(String, String)],
) -> Result<Vec<(String, String)>, LabError> {
    sysctl::set(&place.namespace, settings).map_err(|source| LabError::Sysctl {
        place: place.name.clone(),
        source,
    })
}

fn delete_devices(place: &Arc<Place>) -> Result<(), NetlinkError> {
    place.netlink().delete_group(GROUP)
}

impl Drop for Journal {
    fn drop(&mut self) {
        // Best effort: whoever wants the errors calls `undo` before.
        self.undo();
    }
}

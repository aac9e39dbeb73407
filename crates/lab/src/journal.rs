//! What was done to the nodes and pods, so that it can be undone in reverse.

use std::net::IpAddr;
use std::os::fd::AsFd;
use std::panic::resume_unwind;
use std::sync::Arc;

use plumbline_sys::cpu::ProcessTime;
use plumbline_sys::forwarder::Forwarder;
use plumbline_sys::netlink::{Datapath, LinkSpec, NeighbourSpec, NetlinkError, RouteSpec};
use plumbline_sys::sysctl;

use crate::error::LabError;
use crate::topology::Place;

/// The group of the devices that a network made, as opposed to those of the
/// underlay.
const GROUP: u32 = 1;

/// Does what a network asks for, and remembers how to undo it.
#[derive(Debug, Default)]
pub struct Journal {
    /// What was set, in order.
    settings: Vec<(Arc<Place>, Setting)>,
    /// Places where devices were made, each once, in order.
    devices: Vec<Arc<Place>>,
    /// Processes that forward, each killed when dropped.
    forwarders: Vec<Forwarder>,
}

#[derive(Debug)]
enum Setting {
    Address {
        device: u32,
        address: IpAddr,
        prefix: u8,
    },
    Route(RouteSpec),
    Neighbour(NeighbourSpec),
    Datapath(Arc<Datapath>),
    Hooks {
        device: u32,
    },
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
        let setting = Setting::Address {
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
        self.remember(place, Setting::Route(route));
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
        self.remember(place, Setting::Neighbour(neighbour));
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
        self.remember(place, Setting::Hooks { device });
        let attached = netlink.add_ingress_program(device, name, program);
        attached.map_err(|error| place.failed(error))
    }

    /// Remembers what a network did in `place` by other means.
    pub fn undo_by(&mut self, place: &Arc<Place>, undo: Box<dyn Undo>) {
        self.remember(place, Setting::Other(undo));
    }

    /// Sets sysctls of a device that this journal made. They need no undoing:
    /// they go with the device.
    pub fn device_sysctls(
        &mut self,
        place: &Arc<Place>,
        settings: &[(String, String)],
    ) -> Result<(), LabError> {
        sysctl::set(&place.namespace, settings)
            .map(|_| ())
            .map_err(|source| LabError::Sysctl {
                place: place.name.clone(),
                source,
            })
    }

    /// Makes a datapath of Open vSwitch.
    pub fn datapath(&mut self, place: &Arc<Place>, name: &str) -> Result<Arc<Datapath>, LabError> {
        let created = place.namespace.run(|| Datapath::create(name))?;
        let datapath = Arc::new(created.map_err(|error| place.failed(error))?);
        self.remember(place, Setting::Datapath(Arc::clone(&datapath)));
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
        // A device of theirs goes with them.
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

    fn remember(&mut self, place: &Arc<Place>, setting: Setting) {
        self.settings.push((Arc::clone(place), setting));
    }
}

impl Setting {
    fn undo(self, place: &Place) -> Vec<LabError> {
        let netlink = place.netlink();
        let undone = match self {
            Self::Address {
                device,
                address,
                prefix,
            } => netlink.delete_address(device, address, prefix),
            Self::Route(route) => netlink.delete_route(&route),
            Self::Datapath(datapath) => datapath.delete(),
            Self::Neighbour(neighbour) => netlink.delete_neighbour(&neighbour),
            Self::Hooks { device } => netlink.delete_hooks(device),
            Self::Other(mut undo) => return undo.undo(),
        };
        undone
            .err()
            .map(|error| place.failed(error))
            .into_iter()
            .collect()
    }
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

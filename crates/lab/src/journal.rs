//! What was done to the nodes and pods, so that it can be undone in reverse.

use std::net::IpAddr;
use std::os::fd::AsFd;
use std::panic::resume_unwind;
use std::sync::Arc;

use plumbline_record::LaunchStep;
use plumbline_sys::clock::now_ns;
use plumbline_sys::cpu::ProcessTime;
use plumbline_sys::forwarder::Forwarder;
use plumbline_sys::netlink::{
    AddressSpec, Datapath, Hooks, LinkSpec, NetlinkError, NetlinkSocket, TableEntry,
};
use plumbline_sys::sysctl;

use crate::error::LabError;
use crate::place::Place;

/// The group of the devices that a network made, as opposed to those of the
/// underlay.
const GROUP: u32 = 1;

/// Does what a network asks for, and remembers how to undo it.
#[derive(Default)]
pub struct Journal {
    /// How to undo each step, in the order in which they were done.
    steps: Vec<Undo>,
    /// Places where devices were made, each once, in order.
    devices: Vec<Arc<Place>>,
    /// Processes that forward, each killed when dropped.
    forwarders: Vec<Forwarder>,
    /// Of a single pod: when the steps of attaching it had ended.
    of_pod: Option<Vec<LaunchStep>>,
}

/// Undoes a step without stopping at an error, and gives the errors.
type Undo = Box<dyn FnOnce() -> Vec<LabError> + Send + Sync>;

impl Journal {
    /// The journal of a single pod that comes and goes. All that is done for it goes with
    /// its device, so nothing is undone; but its steps are dated.
    pub(crate) fn of_pod() -> Self {
        Self {
            steps: Vec::new(),
            devices: Vec::new(),
            forwarders: Vec::new(),
            of_pod: Some(Vec::new()),
        }
    }

    /// Says that a step of attaching or releasing a pod has ended.
    pub(crate) fn done(&mut self, step: &str) {
        if let Some(steps) = &mut self.of_pod {
            steps.push(LaunchStep {
                step: step.to_owned(),
                ended_ns: now_ns(),
            });
        }
    }

    /// The steps of a single pod, by the monotonic clock.
    pub(crate) fn into_steps(mut self) -> Vec<LaunchStep> {
        self.of_pod.take().unwrap_or_default()
    }

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
        place.ask(|netlink| netlink.add_link(spec.group(GROUP)))?;
        let is_known = self.devices.iter().any(|known| Arc::ptr_eq(known, inside));
        if !is_known && self.of_pod.is_none() {
            self.devices.push(Arc::clone(inside));
        }
        Ok(())
    }

    /// Makes a device as [`link`](Self::link) does, or takes the one of that
    /// name that the kernel made by itself; brings it up with this MTU, and
    /// gives its index.
    pub fn adopt(
        &mut self,
        place: &Arc<Place>,
        name: &str,
        spec: LinkSpec<'_>,
        mtu: u32,
    ) -> Result<u32, LabError> {
        let Ok(there) = place.link(name) else {
            return self.link(place, name, spec.mtu(mtu).up());
        };
        let device = there.index;
        self.undo_request(place, move |netlink| {
            netlink.set_link_up(device, false)?;
            netlink.set_link_mtu(device, there.mtu)
        });
        place.ask(|netlink| {
            netlink.set_link_mtu(device, mtu)?;
            netlink.set_link_up(device, true)
        })?;
        Ok(device)
    }

    /// Adds a route, rule or neighbour.
    pub fn add(
        &mut self,
        place: &Arc<Place>,
        entry: impl TableEntry + Send + Sync + 'static,
    ) -> Result<(), LabError> {
        place.ask(|netlink| netlink.add(&entry))?;
        self.undo_request(place, move |netlink| netlink.delete(&entry));
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
        self.add(place, AddressSpec::new(device, address, prefix))
    }

    /// Attaches an eBPF program to what comes in through a device that has no tc
    /// hooks yet.
    pub fn ingress_program(
        &mut self,
        place: &Arc<Place>,
        device: u32,
        name: &str,
        program: &impl AsFd,
    ) -> Result<(), LabError> {
        self.add(place, Hooks(device))?;
        place.ask(|netlink| netlink.add_ingress_program(device, name, program))
    }

    /// Makes a datapath of Open vSwitch.
    pub fn datapath(&mut self, place: &Arc<Place>, name: &str) -> Result<Arc<Datapath>, LabError> {
        let created = place.namespace.run(|| Datapath::create(name))?;
        let datapath = Arc::new(created.map_err(|error| place.failed(error))?);
        let made = Arc::clone(&datapath);
        self.undo_request(place, move |_| made.delete());
        Ok(datapath)
    }

    /// Sets sysctls of a place, and sets them back in the end.
    pub fn sysctls(
        &mut self,
        place: &Arc<Place>,
        settings: &[(String, String)],
    ) -> Result<(), LabError> {
        let old = set_sysctls(place, settings)?;
        let place = Arc::clone(place);
        self.undo_by(move || set_sysctls(&place, &old).err().into_iter().collect());
        Ok(())
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

    /// Remembers how to undo what a network did by other means: without stopping
    /// at an error, giving all of them.
    pub fn undo_by(&mut self, undo: impl FnOnce() -> Vec<LabError> + Send + Sync + 'static) {
        if self.of_pod.is_none() {
            self.steps.push(Box::new(undo));
        }
    }

    /// Keeps something that acts for as long as it lives.
    pub(crate) fn keep(&mut self, thing: impl Send + Sync + 'static) {
        self.undo_by(move || {
            drop(thing);
            Vec::new()
        });
    }

    /// Remembers the request that undoes what was done in `place`.
    pub(crate) fn undo_request(
        &mut self,
        place: &Arc<Place>,
        undo: impl FnOnce(&NetlinkSocket) -> Result<(), NetlinkError> + Send + Sync + 'static,
    ) {
        let place = Arc::clone(place);
        self.undo_by(move || place.ask(undo).err().into_iter().collect());
    }

    /// Keeps a process that forwards packets of the network.
    pub fn forwarder(&mut self, forwarder: Forwarder) {
        self.forwarders.push(forwarder);
    }

    /// The numbers of the network's own processes, in the order in which they were started.
    pub(crate) fn forwarder_pids(&self) -> impl Iterator<Item = u32> {
        self.forwarders.iter().map(Forwarder::pid)
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
        while let Some(undo) = self.steps.pop() {
            errors.extend(undo());
        }
        // Their devices go with them. All are killed before the first is waited for.
        self.forwarders.iter().for_each(Forwarder::kill);
        self.forwarders.clear();
        // Devices go last, all of a place at once, and all places at the same
        // time: most of the time is spent waiting for the kernel, which serves
        // several requests with one wait.
        let places = std::mem::take(&mut self.devices);
        std::thread::scope(|scope| {
            let delete = |place| scope.spawn(move || delete_devices(place));
            let threads: Vec<_> = places.iter().map(delete).collect();
            for thread in threads {
                let deleted = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
                errors.extend(deleted.err());
            }
        });
        errors
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

fn delete_devices(place: &Arc<Place>) -> Result<(), LabError> {
    place.ask(|netlink| netlink.delete_group(GROUP))
}

impl Drop for Journal {
    fn drop(&mut self) {
        // Best effort: call `undo` before to get the errors.
        self.undo();
    }
}

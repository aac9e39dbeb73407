//! The namespaces of a path and their devices: what the numbers stand for by which the kernel
//! calls them.

use std::collections::BTreeMap;
use std::sync::Arc;

use plumbline_lab::{Place, StandingNetwork};
use plumbline_protocol::{Hook, TracedDevice};
use plumbline_tracer::devices;

use crate::error::XrayError;
use crate::place::{Device, ELSEWHERE, SeenAt};

/// The namespaces of a path and their devices, by the numbers of the kernel.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    /// Name, and whether it is a pod's, by inode.
    namespaces: BTreeMap<u32, (Arc<str>, bool)>,
    /// By inode and index.
    devices: BTreeMap<(u32, u32), Arc<Device>>,
}

impl Surroundings {
    /// Of a path of the lab that stands, as it is now.
    ///
    /// # Errors
    ///
    /// Devices that cannot be listed.
    pub(crate) fn of(standing: &StandingNetwork) -> Result<Self, XrayError> {
        let mut around = Self::default();
        for (place, is_pod) in places(standing) {
            let devices = devices(place.netlink())?;
            around.add(&place.name, is_pod, inode(place), devices);
        }
        Ok(around)
    }

    /// Adds a namespace, by its inode, with its devices. One that is there keeps its name.
    pub(crate) fn add(&mut self, name: &str, is_pod: bool, inode: u32, of: Vec<TracedDevice>) {
        let known = self.namespaces.entry(inode);
        known.or_insert_with(|| (name.into(), is_pod));
        for device in of {
            let at = (inode, device.index);
            self.devices.insert(at, Arc::new(device.into()));
        }
    }

    /// The place of these numbers. A namespace that is not of the path is called so.
    pub(crate) fn place(&self, namespace: u32, device: u32, hook: Hook) -> SeenAt {
        let (name, is_pod) = match self.namespaces.get(&namespace) {
            Some((name, is_pod)) => (Arc::clone(name), *is_pod),
            None => (ELSEWHERE.into(), false),
        };
        SeenAt {
            hook,
            namespace: name,
            is_pod,
            device: self.devices.get(&(namespace, device)).cloned(),
        }
    }
}

/// The namespaces of a path, and whether each is a pod's.
pub(crate) fn places(standing: &StandingNetwork) -> impl Iterator<Item = (&Place, bool)> {
    let topology = standing.topology();
    let nodes = topology.nodes.iter().chain(&topology.router);
    let pods = topology.pods.iter().map(|pod| (&*pod.place, true));
    nodes.map(|node| (&**node, false)).chain(pods)
}

/// The number by which the kernel's programs know a namespace.
pub(crate) fn inode(place: &Place) -> u32 {
    // Inodes of namespaces are 32 bits wide.
    place.namespace.inode() as u32
}

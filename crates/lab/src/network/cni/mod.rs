//! `cni:FILE`: a CNI configuration list with real plugins, as a container
//! runtime runs them (containernetworking/cni, SPEC.md, versions 0.4.0, 1.0.0
//! and 1.1.0). Each plugin of the list runs in the node's network namespace: ADD
//! in the list's order, each given the result of the one before, then CHECK, and
//! DEL in reverse. What the list leaves to the operator of a cluster is in our own
//! section of it, `plumbline`: routes between nodes, and what a runtime would
//! know of a pod. What only a node knows stands in the file as `{{.PodCIDR}}`.
//!
//! Not modelled: `loopback`, which a namespace of the lab has already; GC and
//! STATUS of 1.1.0; a runtime's cache of results.

mod error;
mod list;
mod plugin;

use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use plumbline_experiment::Family;
use plumbline_record::CniList;
use plumbline_sys::namespace::Namespace;
use plumbline_sys::netlink::NetlinkSocket;
use plumbline_sys::scratch::Scratch;
use serde_json::Value;

pub use self::error::{Call, CniError};
use self::list::{List, Plugin, Routes};
pub use self::plugin::default_directories;
use self::plugin::{Container, Executable};
use super::shape::Shape;
use super::{About, Network, bridge, ipvlan, macvlan};
use crate::need::{Need, VETH};
use crate::{Addressing, Hop, Journal, LabError, Place, Pod, Topology, UPLINK};

/// What the name of such a network begins with.
pub const PREFIX: &str = "cni:";

/// A network made by the plugins of a configuration list.
pub(crate) struct Cni {
    about: About,
    file: PathBuf,
    text: String,
    directories: Vec<PathBuf>,
    /// The version that the list and all its plugins speak, once they were asked.
    version: OnceLock<&'static str>,
}

impl Cni {
    /// Reads a list. `name` is what the network is called, file and all.
    pub(crate) fn read(
        name: &'static str,
        file: &Path,
        directories: &[PathBuf],
    ) -> Result<Self, CniError> {
        let text = std::fs::read_to_string(file).map_err(|source| CniError::Read {
            file: file.into(),
            source,
        })?;
        let mut cni = Self {
            about: About {
                name,
                summary: "pods attached by the plugins of a CNI configuration list",
                ..About::PLAIN
            },
            file: file.into(),
            text,
            directories: directories.to_vec(),
            version: OnceLock::new(),
        };
        // As any node has it, so that what is wrong with it is known at once.
        let list = cni.node_list(Addressing::new(Family::V4), 1, 1500)?;
        let mut needs: Vec<&'static Need> = vec![&VETH];
        needs.extend(list.plugins.iter().filter_map(|it| driver(&it.kind)));
        // As long as the network itself, which is never taken back.
        cni.about.needs = needs.leak();
        Ok(cni)
    }

    /// The list as node `number` has it.
    fn node_list(&self, addressing: Addressing, number: u8, mtu: u32) -> Result<List, CniError> {
        List::parse(&self.file, &self.text, addressing, number, mtu)
    }

    /// The executables of a list, in its order, or the one that is missing.
    fn executables(&self, list: &List) -> Result<Vec<Executable>, String> {
        let find = |kind: &str| {
            Executable::find(kind, &self.directories).ok_or_else(|| {
                let places = self.directories.iter().map(|it| it.display().to_string());
                let places: Vec<String> = places.collect();
                format!(
                    "needs the CNI plugin `{kind}`, which is not in {}; install it (Debian: \
                     containernetworking-plugins), or give its directory by --cni-bin",
                    places.join(" or ")
                )
            })
        };
        list.plugins
            .iter()
            .map(|plugin| find(&plugin.kind))
            .collect()
    }

    /// The best version that the list allows and every plugin speaks.
    fn version(&self, list: &List, executables: &[Executable]) -> Result<&'static str, CniError> {
        if let Some(version) = self.version.get() {
            return Ok(version);
        }
        let here = here()?;
        let mut candidates = list.candidates();
        for executable in executables {
            let speaks = executable.versions(&here)?;
            candidates.retain(|version| speaks.iter().any(|it| it == version));
            if candidates.is_empty() {
                return Err(CniError::Version {
                    plugin: executable.kind.clone(),
                    speaks: speaks.join(", "),
                    wanted: list.asks_for(),
                });
            }
        }
        Ok(self.version.get_or_init(|| candidates[0]))
    }

    fn attach_pod(
        &self,
        topology: &Topology,
        pod: &Pod,
        storage: &Arc<Scratch>,
    ) -> Result<Attachment, LabError> {
        let number = topology.home_number(pod);
        let list = self.node_list(topology.addressing, number, topology.mtu)?;
        let executables = self.found(&list)?;
        let version = self.version(&list, &executables)?;
        let descriptor = pod.place.namespace.as_raw_fd();
        let mut attachment = Attachment {
            node: Arc::clone(topology.home(pod)),
            container: Container {
                pod: pod.place.name.clone(),
                namespace: format!("/proc/{}/fd/{descriptor}", std::process::id()),
                device: UPLINK,
            },
            executables,
            list,
            version,
            result: None,
            folder: storage.path().join(format!("node{number}")),
            _storage: Arc::clone(storage),
        };
        match attachment.add() {
            Ok(()) => Ok(attachment),
            Err(first) => {
                let then = attachment.delete();
                if then.is_empty() {
                    return Err(first.into());
                }
                let first = Box::new(first);
                Err(CniError::NotUndone { first, then }.into())
            }
        }
    }

    /// The same, where one that is missing is an error.
    fn found(&self, list: &List) -> Result<Vec<Executable>, LabError> {
        let found = self.executables(list);
        found.map_err(|needs| LabError::Unsupported {
            what: self.about.name.into(),
            needs,
        })
    }
}

impl Network for Cni {
    fn about(&self) -> &About {
        &self.about
    }

    fn lacks(&self) -> Result<Option<String>, LabError> {
        let list = self.node_list(Addressing::new(Family::V4), 1, 1500)?;
        match self.executables(&list) {
            Ok(executables) => {
                self.version(&list, &executables)?;
                Ok(None)
            }
            Err(needs) => Ok(Some(needs)),
        }
    }

    fn list(&self) -> Result<Option<CniList>, LabError> {
        let list = self.node_list(Addressing::new(Family::V4), 1, 1500)?;
        let executables = self.found(&list)?;
        let here = here()?;
        let mut plugins = Vec::new();
        for (plugin, executable) in list.plugins.iter().zip(&executables) {
            plugins.push(executable.identify(&here)?);
            let ipam = plugin.ipam();
            let ipam = ipam.and_then(|kind| Executable::find(kind, &self.directories));
            if let Some(ipam) = ipam {
                plugins.push(ipam.identify(&here)?);
            }
        }
        Ok(Some(CniList {
            text: self.text.clone(),
            plugins,
        }))
    }

    fn attach(&self, topology: &Topology, journal: &mut Journal) -> Result<Vec<Hop>, LabError> {
        let storage = Scratch::create().map_err(|source| CniError::Scratch { source })?;
        let storage = Arc::new(storage);
        for (number, node) in topology.numbered() {
            let leftovers = PluginDevices::of(node)?;
            journal.undo_by(move || leftovers.delete());
            let list = self.node_list(topology.addressing, number, topology.mtu)?;
            if list.plumbline.routes == Routes::Nodes {
                topology.route_to_others(number, node, journal, |it| topology.pods_of(it))?;
            }
        }
        let family = topology.addressing.family();
        for pod in &topology.pods {
            let attachment = self.attach_pod(topology, pod, &storage)?;
            let address = attachment.address(family);
            journal.undo_by(move || attachment.delete().into_iter().map(Into::into).collect());
            // A topology is attached once.
            let _ = pod.assigned.set(address?);
        }
        Ok(Shape::POD.hops(topology))
    }
}

/// The network namespace of this thread.
fn here() -> Result<Namespace, CniError> {
    Namespace::current().map_err(|error| CniError::Scratch {
        source: std::io::Error::other(error),
    })
}

/// The driver that a plugin needs of the kernel, where it is known.
fn driver(kind: &str) -> Option<&'static Need> {
    match kind {
        "bridge" => Some(&bridge::DRIVER),
        "macvlan" => Some(&macvlan::MACVLAN),
        "ipvlan" => Some(&ipvlan::IPVLAN),
        _ => None,
    }
}

/// A pod that the plugins of a list know.
#[derive(Debug)]
struct Attachment {
    node: Arc<Place>,
    container: Container,
    list: List,
    /// As many as the list has plugins.
    executables: Vec<Executable>,
    version: &'static str,
    /// What the last plugin answered.
    result: Option<Value>,
    /// Where plugins of this node keep what they have to remember.
    folder: PathBuf,
    _storage: Arc<Scratch>,
}

impl Attachment {
    /// ADD, then CHECK.
    fn add(&mut self) -> Result<(), CniError> {
        let namespace = &self.node.namespace;
        for (plugin, executable) in self.list.plugins.iter().zip(&self.executables) {
            let request = self.request(plugin);
            self.result = Some(executable.add(namespace, &self.container, &request)?);
        }
        if self.list.disable_check {
            return Ok(());
        }
        for at in 0..self.executables.len() {
            self.tell(at, "CHECK")?;
        }
        Ok(())
    }

    /// DEL, in reverse, of all plugins whether or not their ADD was reached, as
    /// the specification requires of a runtime.
    fn delete(&self) -> Vec<CniError> {
        let all = (0..self.executables.len()).rev();
        all.filter_map(|at| self.tell(at, "DEL").err()).collect()
    }

    fn tell(&self, at: usize, command: &'static str) -> Result<(), CniError> {
        let request = self.request(&self.list.plugins[at]);
        let namespace = &self.node.namespace;
        self.executables[at].tell(command, namespace, &self.container, &request)
    }

    fn request(&self, plugin: &Plugin) -> Value {
        let previous = self.result.as_ref();
        let list = &self.list;
        list.request(plugin, self.version, previous, &self.folder)
    }

    /// The pod's address.
    fn address(&self, family: Family) -> Result<IpAddr, CniError> {
        let ips = self.result.iter().flat_map(|it| it["ips"].as_array());
        let addresses = ips.flatten().filter_map(|ip| {
            let (address, _) = ip["address"].as_str()?.split_once('/')?;
            address.parse::<IpAddr>().ok()
        });
        let mut fitting = addresses.filter(|it| it.is_ipv4() == (family == Family::V4));
        fitting.next().ok_or_else(|| CniError::NoAddress {
            list: self.list.name.clone(),
            pod: self.container.pod.clone(),
            version: family.into(),
        })
    }
}

/// The devices that a node had before the plugins came. Some of what they make,
/// such as a bridge, no DEL takes away.
#[derive(Debug)]
struct PluginDevices {
    node: Arc<Place>,
    had: Vec<u32>,
}

impl PluginDevices {
    fn of(node: &Arc<Place>) -> Result<Self, LabError> {
        let links = node.ask(NetlinkSocket::links)?;
        Ok(Self {
            node: Arc::clone(node),
            had: links.iter().map(|link| link.index).collect(),
        })
    }

    fn delete(&self) -> Vec<LabError> {
        let links = match self.node.ask(NetlinkSocket::links) {
            Ok(links) => links,
            Err(error) => return vec![error],
        };
        let netlink = self.node.netlink();
        let new = links.iter().filter(|link| !self.had.contains(&link.index));
        new.filter_map(|link| netlink.delete_link(&link.name).err())
            // The other end of a pair is gone with the first.
            .filter(|error| !error.is_gone())
            .map(|error| self.node.failed(error))
            .collect()
    }
}

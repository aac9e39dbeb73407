//! `cni:FILE`: a CNI configuration list with real plugins, as a container
//! runtime runs them (containernetworking/cni, SPEC.md, versions 0.4.0, 1.0.0
//! and 1.1.0). Each plugin of the list runs in the node's network namespace: ADD
//! in the list's order, each given the result of the one before, then CHECK, and
//! DEL in reverse. What the list leaves to the operator of a cluster is in our own
//! section of it, `plumbline`: routes between nodes, and what a runtime would
//! know of a pod. What only a node knows stands in the file as `{{.PodCIDR}}`.
//! In `cni:FILE@DIR` plugins are looked for in a directory before all others, so that
//! two builds of them are two networks.
//!
//! Not modelled: `loopback`, which a namespace of the lab has already; GC and
//! STATUS of 1.1.0; a runtime's cache of results.

mod error;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
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
use self::plugin::{Container, Executable, address_in};
use super::shape::Shape;
use super::{About, Leave, Network, bridge, ipvlan, macvlan};
use crate::need::{Need, VETH};
use crate::{Addressing, Hop, Journal, LabError, Place, Pod, Topology, UPLINK};

/// What the name of such a network begins with.
pub const PREFIX: &str = "cni:";

/// A network made by the plugins of a configuration list.
pub(crate) struct Cni {
    about: About,
    file: PathBuf,
    text: String,
    /// The first of the directories, where the network's name says it.
    own: Option<PathBuf>,
    directories: Vec<PathBuf>,
    /// The version that the list and all its plugins speak, once they were asked.
    version: OnceLock<&'static str>,
}

impl Cni {
    /// Reads a list. `name` is what the network is called, file and all.
    pub(crate) fn read(name: &'static str, directories: &[PathBuf]) -> Result<Self, CniError> {
        let (file, own) = file_and_directory(name.strip_prefix(PREFIX).unwrap_or(name));
        let text = list::read(file).map_err(|source| CniError::Read {
            file: file.into(),
            source,
        })?;
        let own = own.map(Path::to_owned);
        let mut cni = Self {
            about: About {
                name,
                summary: "pods attached by the plugins of a CNI configuration list",
                ..About::PLAIN
            },
            file: file.into(),
            text,
            directories: own.iter().chain(directories).cloned().collect(),
            own,
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
        if let Some(needs) = self.own.as_deref().and_then(|own| lacks_all(list, own)) {
            return Err(needs);
        }
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

    /// ADD for a pod, by the journal each plugin of the list.
    fn attach_pod(
        &self,
        topology: &Topology,
        pod: &Pod,
        journal: &mut Journal,
    ) -> Result<Attachment, LabError> {
        let storage = storage(topology)?;
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
            _storage: storage,
        };
        let added = attachment.add(journal);
        attachment.or_undone(added)
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
            let attachment = self.attach_pod(topology, pod, journal)?;
            let checked = attachment.check();
            let attachment = attachment.or_undone(checked)?;
            let address = attachment.address(family);
            journal.undo_by(move || {
                let errors = attachment.delete(&mut Journal::of_pod());
                errors.into_iter().map(Into::into).collect()
            });
            // A topology is attached once.
            let _ = pod.assigned.set(address?);
        }
        Ok(Shape::POD.hops(topology))
    }

    fn takes_pods(&self) -> bool {
        true
    }

    /// Without CHECK, which runtimes do not ask for when a pod begins.
    fn join(
        &self,
        topology: &Topology,
        pod: &Pod,
        journal: &mut Journal,
    ) -> Result<Leave, LabError> {
        let attachment = self.attach_pod(topology, pod, journal)?;
        let named = attachment.address(topology.addressing.family());
        let named = named.map(|address| {
            // A pod is attached once.
            let _ = pod.assigned.set(address);
        });
        let attachment = attachment.or_undone(named)?;
        Ok(Box::new(move |journal: &mut Journal| {
            let first = attachment.delete(journal).into_iter().next();
            first.map_or(Ok(()), |error| Err(error.into()))
        }))
    }
}

/// The file, and the directory of plugins where `FILE@DIR` has one. A file whose name has
/// an `@` is that file.
fn file_and_directory(written: &str) -> (&Path, Option<&Path>) {
    match written.rsplit_once('@') {
        Some((file, directory)) if !Path::new(written).is_file() => {
            (Path::new(file), Some(Path::new(directory)))
        }
        _ => (Path::new(written), None),
    }
}

/// Why a directory is of no use to a list: with none of its plugins the network would be
/// that of another directory under a wrong name.
fn lacks_all(list: &List, directory: &Path) -> Option<String> {
    let kinds = list.plugins.iter();
    let kinds: Vec<&str> = kinds
        .flat_map(|it| [Some(&*it.kind), it.ipam()])
        .flatten()
        .collect();
    let has = |kind: &&str| Executable::find(kind, &[directory.to_owned()]).is_some();
    (!kinds.iter().any(has)).then(|| {
        format!(
            "needs a CNI plugin of its list in {}, which has none of {}",
            directory.display(),
            kinds.join(", ")
        )
    })
}

/// Where plugins of a topology keep what they have to remember.
fn storage(topology: &Topology) -> Result<Arc<Scratch>, CniError> {
    if let Some(known) = topology.storage.get() {
        return Ok(Arc::clone(known));
    }
    let made = Scratch::create().map_err(|source| CniError::Scratch { source })?;
    Ok(Arc::clone(topology.storage.get_or_init(|| Arc::new(made))))
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
    fn add(&mut self, journal: &mut Journal) -> Result<(), CniError> {
        let namespace = &self.node.namespace;
        for (plugin, executable) in self.list.plugins.iter().zip(&self.executables) {
            let request = self.request(plugin);
            self.result = Some(executable.add(namespace, &self.container, &request)?);
            journal.done(&plugin.kind);
        }
        Ok(())
    }

    fn check(&self) -> Result<(), CniError> {
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
    fn delete(&self, journal: &mut Journal) -> Vec<CniError> {
        let all = (0..self.executables.len()).rev();
        let told = all.filter_map(|at| {
            let error = self.tell(at, "DEL").err();
            journal.done(&self.list.plugins[at].kind);
            error
        });
        told.collect()
    }

    /// The pod as it is attached, or what went wrong once that is undone.
    fn or_undone(self, tried: Result<(), CniError>) -> Result<Self, LabError> {
        let Err(first) = tried else {
            return Ok(self);
        };
        let then = self.delete(&mut Journal::of_pod());
        if then.is_empty() {
            return Err(first.into());
        }
        let first = Box::new(first);
        Err(CniError::NotUndone { first, then }.into())
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
        let result = self.result.as_ref();
        let address = result.and_then(|it| address_in(it, family));
        address.ok_or_else(|| CniError::NoAddress {
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

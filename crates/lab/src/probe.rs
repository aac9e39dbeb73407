//! What a network needs of the kernel, found out by really trying.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plumbline_sys::namespace::Namespace;
use plumbline_sys::netlink::LinkSpec;

use crate::error::LabError;
pub use crate::need::Need;
use crate::need::failed;
use crate::network::cni::{self, Cni};
use crate::network::{self, Network};

/// Answers whether networks can be built here. Each driver is tried once.
///
/// It also knows networks by name: the ones of this program and those that are
/// in a file.
pub struct Probe {
    known: RefCell<BTreeMap<Need, Option<String>>>,
    /// Networks in files, by their names.
    files: RefCell<BTreeMap<String, &'static Cni>>,
    cni_directories: Vec<PathBuf>,
}

impl Default for Probe {
    fn default() -> Self {
        Self::new(cni::default_directories())
    }
}

impl Probe {
    /// CNI plugins are looked for in these directories.
    pub fn new(cni_directories: Vec<PathBuf>) -> Self {
        Self {
            known: RefCell::default(),
            files: RefCell::default(),
            cni_directories,
        }
    }

    /// The network of this name or alias, or of the configuration list that
    /// `cni:FILE` names. A file is read once.
    pub fn find(&self, name: &str) -> Result<&'static dyn Network, LabError> {
        let Some(file) = name.strip_prefix(cni::PREFIX) else {
            return network::find(name);
        };
        let mut files = self.files.borrow_mut();
        if let Some(known) = files.get(name) {
            return Ok(*known);
        }
        // Networks live as long as the program; it is given a handful of files.
        let name: &'static str = name.to_owned().leak();
        let network = Cni::read(name, Path::new(file), &self.cni_directories)?;
        let network: &'static Cni = Box::leak(Box::new(network));
        files.insert(name.into(), network);
        Ok(network)
    }

    /// What the network lacks; `None` when it can be built.
    pub fn missing(&self, network: &dyn Network) -> Result<Option<String>, LabError> {
        match self.lacking(network.about().needs)? {
            Some(missing) => Ok(Some(missing)),
            None => network.lacks(),
        }
    }

    /// The first of these that is lacking; `None` when all are there.
    pub fn lacking(&self, needs: &[Need]) -> Result<Option<String>, LabError> {
        let mut known = self.known.borrow_mut();
        if needs.iter().any(|need| !known.contains_key(need)) {
            let scratch = Namespace::create()?;
            for need in needs {
                let verdict = attempt(*need, &scratch)?;
                known.insert(*need, verdict);
            }
        }
        Ok(needs.iter().find_map(|need| known[need].clone()))
    }
}

fn attempt(need: Need, scratch: &Namespace) -> Result<Option<String>, LabError> {
    const PARENT: &str = "parent";
    let netlink = scratch.netlink();
    let parent = match netlink.link(PARENT) {
        Ok(link) => link.index,
        Err(_) => match netlink.add_link(LinkSpec::veth(PARENT, LinkSpec::peer("parent-peer"))) {
            Ok(()) => netlink.link(PARENT).map_err(failed)?.index,
            Err(error) if error.is_unsupported() => return Ok(Some(Need::Veth.remedy().into())),
            Err(error) => return Err(failed(error)),
        },
    };
    need.lacks(scratch, parent)
}

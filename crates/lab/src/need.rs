//! What networks need of the kernel, found out by trying it. Each need is defined
//! where it arises, mostly beside its network.

use std::fmt::Display;
use std::net::IpAddr;
use std::path::Path;

use plumbline_sys::namespace::Namespace;
use plumbline_sys::netlink::{LinkSpec, NetlinkError, NetlinkSocket, TunnelEnds};

use crate::error::LabError;

/// A driver of the kernel that a network needs.
#[derive(Debug)]
pub struct Need {
    remedy: Remedy,
    /// Whether loading the module makes devices in every network namespace, the
    /// machine's own too, where they then stay.
    makes_devices: bool,
    attempt: fn(&ScratchNamespace) -> Result<Presence, LabError>,
}

#[derive(Debug)]
enum Remedy {
    /// A configuration option of the kernel, and the module that it makes.
    Module(&'static str, &'static str),
    /// What is missing, and how to get it.
    Text(&'static str),
}

/// What an attempt found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// The driver is there.
    Present,
    /// It is missing.
    Missing,
    /// It is missing, for this reason.
    MissingBecause(String),
    /// Something else is missing: what, and how to get it.
    Otherwise(&'static str),
}

/// Pairs of virtual Ethernet devices.
pub(crate) static VETH: Need = Need::module("CONFIG_VETH", "veth", |bench| {
    bench.device(LinkSpec::veth(PROBE, LinkSpec::peer("probe-peer")))
});

impl Need {
    /// A driver that a kernel has by the configuration option `option`, which may be
    /// loaded as the module `module`.
    pub(crate) const fn module(
        option: &'static str,
        module: &'static str,
        attempt: fn(&ScratchNamespace) -> Result<Presence, LabError>,
    ) -> Self {
        Self {
            remedy: Remedy::Module(option, module),
            makes_devices: false,
            attempt,
        }
    }

    /// A driver whose module makes a device of its own in every network namespace as
    /// soon as it is loaded, such as `tunl0`. It is not tried when the machine has the
    /// module and has not loaded it: whoever only looks changes nothing.
    pub(crate) const fn that_makes_devices(mut self) -> Self {
        self.makes_devices = true;
        self
    }

    /// A driver whose absence has a remedy of its own.
    pub(crate) const fn other(
        remedy: &'static str,
        attempt: fn(&ScratchNamespace) -> Result<Presence, LabError>,
    ) -> Self {
        Self {
            remedy: Remedy::Text(remedy),
            makes_devices: false,
            attempt,
        }
    }

    /// What is missing without it, and how to get it.
    pub fn remedy(&self) -> String {
        match self.remedy {
            Remedy::Module(option, module) => {
                format!("needs {option}; try `modprobe {module}`, or `--kernel uml`")
            }
            Remedy::Text(text) => text.into(),
        }
    }

    /// Tries it, and gives what is missing.
    pub(crate) fn lacks(&self, bench: &ScratchNamespace) -> Result<Option<String>, LabError> {
        self.tried(Path::new("/"), || (self.attempt)(bench))
    }

    /// What an attempt finds missing; it is not made where it would load a module that
    /// makes devices. `root` is `/`, or a stand-in for tests.
    fn tried(
        &self,
        root: &Path,
        attempt: impl FnOnce() -> Result<Presence, LabError>,
    ) -> Result<Option<String>, LabError> {
        if self.waits_to_be_loaded(root) {
            return Ok(None);
        }
        Ok(match attempt()? {
            Presence::Present => None,
            Presence::Missing => Some(self.remedy()),
            Presence::MissingBecause(reason) => Some(format!("{} ({reason})", self.remedy())),
            Presence::Otherwise(needs) => Some(needs.into()),
        })
    }

    /// Whether trying it would load a module that makes devices.
    fn waits_to_be_loaded(&self, root: &Path) -> bool {
        let (true, Remedy::Module(_, module)) = (self.makes_devices, &self.remedy) else {
            return false;
        };
        let loaded = root.join("sys/module").join(module).exists();
        let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
        let release = read("proc/sys/kernel/osrelease");
        // A line for each module that can be loaded: `kernel/net/ipv4/ipip.ko.zst: …`.
        let modules = read(&format!("lib/modules/{}/modules.dep", release.trim()));
        let is_it = |line: &str| {
            let file = line
                .split(':')
                .next()
                .and_then(|path| path.rsplit('/').next());
            file.and_then(|file| file.split('.').next()) == Some(module)
        };
        !loaded && modules.lines().any(is_it)
    }
}

/// The name of what is made for an attempt.
pub(crate) const PROBE: &str = "probe";

/// A namespace to try things in, with a device that others may be put on top of.
pub(crate) struct ScratchNamespace {
    scratch: Namespace,
    /// Index number of the device.
    pub(crate) parent: u32,
}

impl ScratchNamespace {
    /// Makes the namespace; `None` on a kernel that lacks [`VETH`].
    pub(crate) fn set_up() -> Result<Option<Self>, LabError> {
        const PARENT: &str = "parent";
        let scratch = Namespace::create()?;
        let netlink = scratch.netlink();
        let pair = LinkSpec::veth(PARENT, LinkSpec::peer("parent-peer"));
        match netlink.add_link(pair) {
            Ok(()) => {
                let parent = netlink.link(PARENT).map_err(failed)?.index;
                Ok(Some(Self { scratch, parent }))
            }
            Err(error) if error.is_unsupported() => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// The netlink socket of the namespace.
    pub(crate) fn netlink(&self) -> &NetlinkSocket {
        self.scratch.netlink()
    }

    /// Makes a device of the name [`PROBE`], and deletes it.
    pub(crate) fn device(&self, link: LinkSpec<'_>) -> Result<Presence, LabError> {
        let made = self.netlink().add_link(link);
        judge(made.and_then(|()| self.netlink().delete_link(PROBE)))
    }

    /// Makes a queueing discipline on the device of the namespace, and deletes it.
    pub(crate) fn discipline(&self, added: Result<(), NetlinkError>) -> Result<Presence, LabError> {
        let tried = added.and_then(|()| self.netlink().delete_discipline(self.parent));
        match tried {
            // The kernel's answer to a discipline that it does not know.
            Err(error) if error.is_gone() => Ok(Presence::Missing),
            tried => judge(tried),
        }
    }

    /// Sends requests by a socket that is opened in the namespace.
    pub(crate) fn request(
        &self,
        request: impl FnOnce() -> Result<(), NetlinkError> + Send,
    ) -> Result<Presence, LabError> {
        judge(self.scratch.run(request)?)
    }

    /// Opens in the namespace what the program of a network opens. Whatever
    /// the reason of a failure: without it the network cannot be built.
    pub(crate) fn open<E: Display + Send>(
        &self,
        open: impl FnOnce() -> Result<(), E> + Send,
    ) -> Result<Presence, LabError> {
        Ok(match self.scratch.run(open)? {
            Ok(()) => Presence::Present,
            Err(error) => Presence::MissingBecause(error.to_string()),
        })
    }
}

/// A tunnel from an address to itself: nothing is ever sent.
pub(crate) fn ends(address: impl Into<IpAddr>) -> TunnelEnds {
    let local = address.into();
    TunnelEnds {
        local,
        remote: Some(local),
    }
}

fn judge(tried: Result<(), NetlinkError>) -> Result<Presence, LabError> {
    match tried {
        Ok(()) => Ok(Presence::Present),
        Err(error) if error.is_unsupported() => Ok(Presence::Missing),
        Err(error) => Err(failed(error)),
    }
}

/// An error that is not about a driver.
pub(crate) fn failed(source: NetlinkError) -> LabError {
    LabError::Netlink {
        place: "a scratch namespace".into(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `tunl0` would stay in the machine's own namespace.
    #[test]
    fn a_module_that_makes_devices_is_not_loaded_by_a_look() {
        let tunnel = Need::module("CONFIG_NET_IPIP", "ipip", |_| Ok(Presence::Missing));
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/sys/kernel/osrelease", "6.1.0\n");
        let dependencies = "kernel/net/ipv4/ip_gre.ko: kernel/net/ipv4/gre.ko\n\
             kernel/net/ipv4/ipip.ko.zst: kernel/net/ipv4/tunnel4.ko.zst\n";
        write("lib/modules/6.1.0/modules.dep", dependencies);
        assert!(!tunnel.waits_to_be_loaded(root.path()), "it makes none");
        let tunnel = tunnel.that_makes_devices();
        assert!(tunnel.waits_to_be_loaded(root.path()));
        let lacks = || tunnel.tried(root.path(), || Ok(Presence::Missing)).unwrap();
        assert_eq!(lacks(), None, "it is not tried");
        write("sys/module/ipip/refcnt", "0\n");
        assert!(!tunnel.waits_to_be_loaded(root.path()), "it is loaded");
        assert_eq!(lacks(), Some(tunnel.remedy()));
        let other = Need::module("CONFIG_GRE", "gre", |_| Ok(Presence::Missing));
        let other = other.that_makes_devices();
        assert!(!other.waits_to_be_loaded(root.path()), "there is none");
    }

    #[test]
    fn tunnels_of_the_kernel_are_known_to_make_devices() {
        use crate::network::catalogue;

        let makers = ["ipip", "ip_gre", "ip6_gre", "ip6_tunnel"];
        let mut seen = std::collections::BTreeSet::new();
        for need in catalogue::ALL.iter().flat_map(|it| it.about().needs) {
            let Remedy::Module(_, module) = need.remedy else {
                continue;
            };
            assert_eq!(need.makes_devices, makers.contains(&module), "{module}");
            seen.insert(module);
        }
        assert!(makers.iter().all(|it| seen.contains(it)), "{seen:?}");
    }
}

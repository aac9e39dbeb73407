//! Where a fault is planted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use plumbline_experiment::Family;

use crate::dressing::rule_writer::{RuleWriter, family_of_table};
use crate::error::LabError;
use crate::hop::Hop;
use crate::journal::Journal;
use crate::network::About;
use crate::place::Place;
use crate::topology::Topology;

/// The table that faults are in.
const TABLE: &str = "plumbline-fault";

/// A path that stands, on which a fault is planted.
pub(crate) struct FaultSite<'a> {
    pub(crate) about: &'a About,
    pub(crate) topology: &'a Topology,
    pub(crate) hops: &'a [Hop],
    pub(crate) client: &'a Arc<Place>,
    pub(crate) server: &'a Arc<Place>,
    /// Where the client and the server are reached.
    pub(crate) addresses: [IpAddr; 2],
    /// The largest packet that passes, in bytes.
    pub(crate) mtu: u32,
}

/// A place that forwards the path's packets, and the device that they leave it by.
pub(super) struct Router<'a> {
    pub(super) place: &'a Arc<Place>,
    pub(super) device: &'a str,
    pub(super) index: u32,
}

impl FaultSite<'_> {
    /// The first place that routes what goes to the server.
    ///
    /// # Errors
    ///
    /// [`LabError::Unsupported`] where none does.
    pub(super) fn router(&self) -> Result<Router<'_>, LabError> {
        let [_, server] = self.addresses;
        self.routes(server, self.hops.iter().filter(|hop| hop.sends))
    }

    /// The first place that routes what goes back to the client.
    ///
    /// # Errors
    ///
    /// As [`router`](Self::router).
    pub(super) fn router_back(&self) -> Result<Router<'_>, LabError> {
        let [client, _] = self.addresses;
        self.routes(client, self.hops.iter().rev().filter(|hop| !hop.sends))
    }

    fn routes<'h>(
        &'h self,
        to: IpAddr,
        leaving: impl Iterator<Item = &'h Hop>,
    ) -> Result<Router<'h>, LabError> {
        for hop in leaving {
            let is_end = [self.client, self.server]
                .iter()
                .any(|end| Arc::ptr_eq(end, &hop.place));
            if is_end {
                continue;
            }
            let index = hop.place.index(&hop.device)?;
            let route = hop.place.ask(|netlink| netlink.route_to(to));
            if route.is_ok_and(|route| route.device == index) {
                return Ok(Router {
                    place: &hop.place,
                    device: &hop.device,
                    index,
                });
            }
        }
        Err(self.lacks("a network whose nodes route between pods on both, such as vxlan"))
    }

    /// Why a fault cannot be planted here.
    pub(super) fn lacks(&self, needs: &str) -> LabError {
        LabError::Unsupported {
            what: format!("this fault on `{}`", self.about.name),
            needs: needs.to_owned(),
        }
    }

    /// The client's device, which everything that it sends leaves by.
    pub(super) fn first_device(&self) -> (&Arc<Place>, &str) {
        let first = &self.hops[0];
        (&first.place, &first.device)
    }

    /// What of `nft` matches packets to the server.
    pub(super) fn to_server(&self) -> String {
        let [_, server] = self.addresses;
        format!("{} daddr {server}", self.family())
    }

    /// What of `nft` matches packets to the client.
    pub(super) fn to_client(&self) -> String {
        let [client, _] = self.addresses;
        format!("{} daddr {client}", self.family())
    }

    /// An address that a path of the other IP version knows nothing of, and the length of its
    /// prefix in bits.
    pub(super) fn stray(&self, version: Family, number: u8) -> (IpAddr, u8) {
        // Of the ranges that are set aside for benchmarks (RFC 2544, RFC 5180).
        match version {
            Family::V4 => (Ipv4Addr::new(198, 19, 250, number).into(), 24),
            Family::V6 => {
                let address = Ipv6Addr::new(0x2001, 2, 0, 0xfa, 0, 0, 0, number.into());
                (address.into(), 64)
            }
        }
    }

    /// Has the first place that routes to the server look at all that it forwards.
    pub(super) fn filter(&self, rules: &[&str], journal: &mut Journal) -> Result<(), LabError> {
        let chains = [chain("forward", 0, rules)];
        lay(self.router()?.place, self.family(), &chains, journal)
    }

    /// The same of the first place that routes back to the client.
    pub(super) fn filter_back(
        &self,
        rules: &[&str],
        journal: &mut Journal,
    ) -> Result<(), LabError> {
        let chains = [chain("forward", 0, rules)];
        lay(self.router_back()?.place, self.family(), &chains, journal)
    }

    /// What `nft` calls the tables of this IP version.
    pub(super) fn family(&self) -> &'static str {
        family_of_table(self.topology.addressing.family())
    }
}

/// A chain at one of the kernel's hooks.
pub(super) fn chain(hook: &str, priority: i32, rules: &[&str]) -> String {
    let rules = rules.join("\n");
    format!("chain {hook} {{\ntype filter hook {hook} priority {priority};\n{rules}\n}}\n")
}

/// Lays chains in a place, in a table of their own.
pub(super) fn lay(
    place: &Arc<Place>,
    family: &str,
    chains: &[String],
    journal: &mut Journal,
) -> Result<(), LabError> {
    let table = format!("{family} {TABLE}");
    let text = format!("table {table} {{\n{}}}\n", chains.concat());
    let removal = (RuleWriter::NFT, RuleWriter::no_table(&table));
    RuleWriter::NFT.lay_on(&[Arc::clone(place)], &[text], removal, journal)
}

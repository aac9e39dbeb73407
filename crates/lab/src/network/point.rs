//! A tunnel device on each node for each other node, with both ends set, and a
//! route to that node's pods through it.

use plumbline_sys::netlink::{LinkSpec, TunnelEnds};

use super::shape::TunnelName;
use crate::{Journal, LabError, Topology};

/// Makes the devices, each by `link` from its name and its ends, and brings
/// them up.
pub(super) fn attach(
    topology: &Topology,
    journal: &mut Journal,
    name: TunnelName,
    link: impl Fn(&str, TunnelEnds) -> LinkSpec<'static>,
) -> Result<(), LabError> {
    let addressing = topology.addressing;
    for (own, node) in topology.numbered() {
        for remote in topology.remotes(own) {
            let name = name(addressing, remote);
            let ends = TunnelEnds {
                local: addressing.node(own),
                remote: Some(addressing.node(remote)),
            };
            let device = journal.link(node, &name, link(&name, ends).up())?;
            let pods = topology.pods_of(remote);
            journal.add(node, pods.dev(device))?;
        }
    }
    Ok(())
}

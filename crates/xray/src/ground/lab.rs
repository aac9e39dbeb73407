//! A lab on this machine.

use std::sync::Arc;

use plumbline_experiment::{Family, Link, Scene, Treatment, Workload};
use plumbline_harness::{Cpus, Path, Target as _, TargetError, prepare};
use plumbline_lab::{Lab, Place, StandingNetwork};
use plumbline_protocol::{Followed, FollowedPart, Traces};
use plumbline_sys::bpf::AtNetfilter;
use plumbline_tracer::Tracer;

use super::port::AtPort;
use super::{Ground, RequestSample, demand};
use crate::around::{Surroundings, inode};
use crate::error::XrayError;
use crate::eye::Eye;
use crate::load::TIMING;
use crate::order::XrayOrder;
use crate::taps;
use crate::view::Glimpse;

/// A lab on this machine, and what looks into it.
pub(crate) struct LabGround<'a> {
    lab: &'a mut Lab,
    eye: Eye,
    /// Whether netfilter's hooks are told apart.
    netfilter: bool,
    link: Link,
}

impl<'a> LabGround<'a> {
    pub(crate) fn new(
        lab: &'a mut Lab,
        order: XrayOrder,
        say: &dyn Fn(&str),
    ) -> Result<Self, XrayError> {
        let eye = Eye::open(order, say)?;
        Ok(Self {
            lab,
            eye,
            netfilter: order.netfilter,
            link: order.link,
        })
    }
}

/// The path of a scene.
fn standing<'a>(lab: &'a mut Lab, scene: &Scene) -> Result<&'a StandingNetwork, XrayError> {
    let standing = lab.stand_as(scene).map_err(TargetError::from)?;
    Ok(standing)
}

/// All that goes from the sender's namespace to the receiver's port.
fn followed(standing: &StandingNetwork, path: &AtPort<'_>, sample: RequestSample) -> Followed {
    Followed {
        part: FollowedPart::Whole,
        client: inode(standing.client_place()),
        port: path.asked_port(),
        server: inode(standing.server_place()),
        listening: path.listening_port(),
        one_in: sample.one_in,
        longest_ns: sample.longest_ns,
        warm_up_ns: TIMING.warm_up_ns,
        inside: Vec::new(),
    }
}

/// The halves of that: what the sender's node and pod see, and the receiver's. What is on the
/// same node is of the sender's.
fn halves(standing: &StandingNetwork, whole: &Followed) -> Option<[Followed; 2]> {
    let nodes = &standing.topology().nodes;
    let [near, far] = [nodes.first()?, nodes.get(1)?].map(|node| inode(node));
    let of = |part, inside: [u32; 2]| Followed {
        part,
        inside: inside.to_vec(),
        ..whole.clone()
    };
    Some([
        of(FollowedPart::Sender, [near, whole.client]),
        of(FollowedPart::Receiver, [far, whole.server]),
    ])
}

/// Programs at netfilter's hooks on each node of a path.
fn filters(
    tracer: &Tracer,
    standing: &StandingNetwork,
    is_v6: bool,
) -> Result<Vec<AtNetfilter>, XrayError> {
    let nodes = standing.topology().nodes.iter();
    let on_node =
        |node: &Arc<Place>| Ok(node.namespace.run(|| tracer.split_netfilter(is_v6))??);
    nodes.map(on_node).collect()
}

impl Ground for LabGround<'_> {
    fn prepare(&mut self, treatments: &[Treatment]) -> Result<(), XrayError> {
        Ok(prepare(self.lab, &demand(treatments, self.link))?)
    }

    fn cpus(&self) -> Cpus {
        self.lab.cpus()
    }

    fn one_in(&self, asked: u64) -> u64 {
        self.eye.one_in(asked)
    }

    fn by(&self) -> &'static str {
        self.eye.by()
    }

    fn stamped(&self, workload: &Workload) -> Workload {
        self.eye.stamped(workload)
    }

    fn alone<T>(
        &mut self,
        treatment: &Treatment,
        port: u16,
        work: impl FnOnce(&dyn Path) -> T,
    ) -> Result<T, XrayError> {
        let standing = standing(self.lab, &treatment.scene)?;
        Ok(work(&AtPort::new(standing, port)))
    }

    fn watched<T>(
        &mut self,
        treatment: &Treatment,
        port: u16,
        sample: RequestSample,
        work: impl FnOnce(&dyn Path) -> T,
    ) -> Result<(T, Glimpse), XrayError> {
        let standing = standing(self.lab, &treatment.scene)?;
        let path = AtPort::new(standing, port);
        let around = Surroundings::of(standing)?;
        let work = || work(&path);
        let whole = |(done, traces): (T, Traces)| (done, Glimpse::whole(&traces, &around));
        let followed = followed(standing, &path, sample);
        match &mut self.eye {
            Eye::Tracer(tracer) => {
                let is_v6 = treatment.scene.family == Family::V6;
                let _filters = match self.netfilter {
                    true => filters(tracer, standing, is_v6)?,
                    false => Vec::new(),
                };
                Ok(whole(tracer.watch(&followed, work)?))
            }
            Eye::Halves([near, far]) => {
                let Some([sender, receiver]) = halves(standing, &followed) else {
                    return Ok(whole(near.watch(&followed, work)?));
                };
                far.begin(&receiver)?;
                let (done, seen) = near.watch(&sender, work)?;
                let seen = [seen, far.end()?];
                Ok((done, Glimpse::halves(&seen, &around)))
            }
            Eye::Taps => {
                let task = &treatment.task;
                let size = task.load().map_or(0, |load| load.request_size);
                let (done, tapped) = taps::watch(standing, sample, size, work)?;
                Ok((done, Glimpse::tapped(&tapped, &around)))
            }
        }
    }
}

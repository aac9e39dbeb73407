//! Which datagrams of a probe the kernel drops, and why.

use std::collections::BTreeSet;

use plumbline_harness::{Path, TargetError};
use plumbline_protocol::{
    DroppedDatagrams, SentTrain, Survey, TakenTrain, TraceAnswer, TraceOrder,
};
use plumbline_tracer::{DropWatch, TracerError};

use super::allowed::PathTrials;
use super::post::{Heading, Post, Posts, TrainShape};
use super::seen::DroppedThere;

/// What watches.
pub(super) enum Drops<'a> {
    /// Nothing, for nobody asked.
    Nobody,
    /// Nothing, and why.
    Unseen(String),
    /// A program in this machine's kernel.
    Here(DropWatch),
    /// Agents that may load one, each on a kernel of its own.
    There(Vec<&'a Post>),
}

/// What became of a train, and what of it was dropped where.
type WatchedTrain = (
    (SentTrain, TakenTrain),
    Option<Result<Vec<DroppedThere>, String>>,
);

impl<'a> Drops<'a> {
    /// What may watch this path.
    pub(super) fn open(
        allowed: &PathTrials,
        path: &dyn Path,
        posts: &'a Posts,
    ) -> Result<Self, TargetError> {
        if allowed.of_this_kernel {
            return Ok(match DropWatch::load() {
                Ok(watch) => Self::Here(watch),
                Err(error) => Self::Unseen(needs(&error)),
            });
        }
        if !allowed.tracing {
            return Ok(Self::Nobody);
        }
        // The nodes, of which some may be one kernel.
        let mut boots = BTreeSet::new();
        let mut watching = Vec::new();
        for post in &posts.all()[1..=path.waypoints().len()] {
            match post.trace(TraceOrder::Place)? {
                TraceAnswer::Place(place) if boots.insert(place.boot.clone()) => {
                    watching.push(post);
                }
                _ => {}
            }
        }
        Ok(Self::There(watching))
    }

    /// Sends a train and sees what is dropped of it; names places by the surveys of all posts.
    pub(super) fn watch(
        &mut self,
        surveys: &[Survey],
        posts: &Posts,
        way: Heading<'_>,
        shape: TrainShape,
    ) -> Result<WatchedTrain, TargetError> {
        let key = posts.key().to_be_bytes();
        let payload_bytes = shape.packet_bytes - way.header_bytes();
        let failed = |error: TracerError| TargetError::Failed(error.to_string());
        let train = || posts.train(way, shape);
        let (train, drops) = match self {
            Self::Nobody => return Ok((train()?, None)),
            Self::Unseen(why) => return Ok((train()?, Some(Err(why.clone())))),
            Self::Here(watch) => {
                watch.begin(key, payload_bytes).map_err(failed)?;
                let train = train();
                (train, watch.end().map_err(failed)?)
            }
            Self::There(nodes) => {
                let order = TraceOrder::WatchDrops { key, payload_bytes };
                for node in &*nodes {
                    match node.trace(order.clone())? {
                        TraceAnswer::Follows => {}
                        TraceAnswer::Lacks { needs } => {
                            return Ok((train()?, Some(Err(format!("on {}: {needs}", node.name)))));
                        }
                        other => return Err(node.unasked(&other)),
                    }
                }
                let train = train();
                let mut drops = Vec::new();
                for node in &*nodes {
                    match node.trace(TraceOrder::TellDrops)? {
                        TraceAnswer::Dropped { drops: more } => drops.extend(more),
                        other => return Err(node.unasked(&other)),
                    }
                }
                (train, drops)
            }
        };
        let named = drops.iter().map(|it| DroppedThere {
            at: place(surveys, posts, it),
            reason: it.reason.clone(),
            packets: it.packets,
        });
        Ok((train?, Some(Ok(named.collect()))))
    }
}

/// What is missing, without the kernel's words for that.
fn needs(error: &TracerError) -> String {
    let text = error.to_string();
    let first = text.split(": ").next();
    first.unwrap_or_default().to_owned()
}

fn place(surveys: &[Survey], posts: &Posts, drop: &DroppedDatagrams) -> String {
    let mut places = posts.all().iter().zip(surveys);
    let Some((post, survey)) = places.find(|(_, survey)| survey.namespace == drop.namespace) else {
        return "a namespace that is not of this path".to_owned();
    };
    let mut devices = survey.devices.iter();
    match devices.find(|it| it.index == drop.device) {
        Some(device) => format!("{} of {}", device.name, post.name),
        None => post.name.clone(),
    }
}

//! Whether switching an offload off makes a stream faster.

use std::collections::BTreeMap;
use std::time::Duration;

use plumbline_harness::TargetError;
use plumbline_protocol::{OffloadGroup, SentStream, SoundOrder, Sounded};

use super::post::{Heading, Post, Posts};
use super::seen::OffloadTrial;

/// For how long each stream is sent.
const STREAM: Duration = Duration::from_millis(200);
/// A stream that is so many times as fast is tried again.
pub(super) const FASTER: f64 = 2.0;

/// Tries each offload of the devices on the way, in one place after the other, and puts it
/// back.
pub(super) fn all(
    posts: &Posts,
    way: Heading<'_>,
    crossed: &[BTreeMap<String, Vec<String>>; 2],
) -> Result<Vec<OffloadTrial>, TargetError> {
    let mut trials = Vec::new();
    for post in posts.all() {
        let mut devices: Vec<String> = Vec::new();
        for name in crossed.iter().filter_map(|it| it.get(&post.name)).flatten() {
            if !devices.contains(name) {
                devices.push(name.clone());
            }
        }
        for offload in OffloadGroup::ALL {
            let mut best_on = rate(&posts.stream(way, STREAM)?);
            let Some((changed, mut worst_off)) = without(posts, way, post, &devices, offload)?
            else {
                continue;
            };
            best_on = best_on.max(rate(&posts.stream(way, STREAM)?));
            if worst_off > best_on * FASTER
                && let Some((_, again)) = without(posts, way, post, &devices, offload)?
            {
                worst_off = worst_off.min(again);
                best_on = best_on.max(rate(&posts.stream(way, STREAM)?));
            }
            trials.push(OffloadTrial {
                place: post.name.clone(),
                devices: changed,
                offload,
                on: best_on,
                off: worst_off,
            });
        }
    }
    Ok(trials)
}

/// The rate of a stream with an offload off; `None` where no device has it on.
fn without(
    posts: &Posts,
    way: Heading<'_>,
    post: &Post,
    devices: &[String],
    offload: OffloadGroup,
) -> Result<Option<(Vec<String>, f64)>, TargetError> {
    let order = SoundOrder::SwitchOff {
        devices: devices.to_vec(),
        offload,
    };
    let changed = match post.sound(order, Duration::ZERO)? {
        Sounded::SwitchedOff { devices } => devices,
        other => {
            let name = &post.name;
            return Err(TargetError::Failed(format!(
                "the agent on {name} was to switch {offload:?} off and answers {other:?}"
            )));
        }
    };
    if changed.is_empty() {
        return Ok(None);
    }
    let sent = posts.stream(way, STREAM);
    // Whatever became of the stream.
    post.sound(SoundOrder::PutBack, Duration::ZERO)?;
    Ok(Some((changed, rate(&sent?))))
}

/// Bits per second.
fn rate(sent: &SentStream) -> f64 {
    sent.acked as f64 * 8e9 / sent.length_ns.max(1) as f64
}

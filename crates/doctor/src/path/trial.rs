//! Whether switching an offload off makes a stream faster.

use std::array;
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

/// StreamRates of a stream each way, bits per second.
type StreamRates = [f64; 2];

/// What a trial came to, of the way that gains most.
#[derive(Debug, PartialEq)]
struct OffloadEffect {
    devices: Vec<String>,
    /// There, or back.
    way: usize,
    on: f64,
    off: f64,
}

/// Tries each offload of the devices on the way, in one place after the other, and puts it
/// back. Streams go both ways, because an offload may be broken for one of them only.
pub(super) fn all(
    posts: &Posts,
    ways: [Heading<'_>; 2],
    crossed: &[BTreeMap<String, Vec<String>>; 2],
) -> Result<Vec<OffloadTrial>, TargetError> {
    let mut trials = Vec::new();
    let mut last = rates(posts, ways)?;
    for post in posts.all() {
        let mut devices: Vec<String> = Vec::new();
        for name in crossed.iter().filter_map(|it| it.get(&post.name)).flatten() {
            if !devices.contains(name) {
                devices.push(name.clone());
            }
        }
        for offload in OffloadGroup::ALL {
            let off = || without(posts, ways, post, &devices, offload);
            let Some(seen) = compare(&mut last, off, || rates(posts, ways))? else {
                continue;
            };
            let Heading { from, to, .. } = ways[seen.way];
            trials.push(OffloadTrial {
                place: post.name.clone(),
                devices: seen.devices,
                offload,
                way: format!("from {} to {}", from.name, to.name),
                on: seen.on,
                off: seen.off,
            });
        }
    }
    Ok(trials)
}

/// Holds streams with something off against those before, which are `last`, and behind; `None`
/// where nothing is on that could be off.
fn compare<E>(
    last: &mut StreamRates,
    mut off: impl FnMut() -> Result<Option<(Vec<String>, StreamRates)>, E>,
    mut on: impl FnMut() -> Result<StreamRates, E>,
) -> Result<Option<OffloadEffect>, E> {
    let Some((devices, mut worst_off)) = off()? else {
        return Ok(None);
    };
    let mut best_on = *last;
    *last = on()?;
    best_on = each(best_on, *last, f64::max);
    let is_faster = |way: usize| worst_off[way] > best_on[way] * FASTER;
    if (is_faster(0) || is_faster(1))
        && let Some((_, again)) = off()?
    {
        worst_off = each(worst_off, again, f64::min);
        *last = on()?;
        best_on = each(best_on, *last, f64::max);
    }
    // Nothing may get over with it on.
    let gain = |way: usize| worst_off[way] / best_on[way].max(1.0);
    let way = usize::from(gain(1) > gain(0));
    Ok(Some(OffloadEffect {
        devices,
        way,
        on: best_on[way],
        off: worst_off[way],
    }))
}

fn each(one: StreamRates, other: StreamRates, choose: fn(f64, f64) -> f64) -> StreamRates {
    array::from_fn(|way| choose(one[way], other[way]))
}

/// The rates with an offload off; `None` where no device has it on.
fn without(
    posts: &Posts,
    ways: [Heading<'_>; 2],
    post: &Post,
    devices: &[String],
    offload: OffloadGroup,
) -> Result<Option<(Vec<String>, StreamRates)>, TargetError> {
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
    let rates = rates(posts, ways);
    // Whatever became of the streams.
    post.sound(SoundOrder::PutBack, Duration::ZERO)?;
    Ok(Some((changed, rates?)))
}

/// The rates of streams, one after the other.
fn rates(posts: &Posts, [there, back]: [Heading<'_>; 2]) -> Result<StreamRates, TargetError> {
    Ok([
        rate(&posts.stream(there, STREAM)?),
        rate(&posts.stream(back, STREAM)?),
    ])
}

/// Bits per second.
fn rate(sent: &SentStream) -> f64 {
    sent.acked as f64 * 8e9 / sent.length_ns.max(1) as f64
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// What a trial comes to in which streams go so fast.
    fn compared(
        last: &mut StreamRates,
        off: &[StreamRates],
        on: &[StreamRates],
    ) -> Option<OffloadEffect> {
        let (mut off, mut on) = (off.iter(), on.iter());
        let devices = || vec!["eth0".to_owned()];
        let off = || Ok::<_, Infallible>(off.next().map(|rates| (devices(), *rates)));
        let Ok(seen) = compare(last, off, || Ok(*on.next().expect("no more streams")));
        assert!(on.next().is_none(), "one more stream was meant");
        seen
    }

    #[test]
    fn an_offload_that_is_broken_one_way_is_seen_whichever_that_is() {
        for broken in [0, 1] {
            let mut last = [9e9, 9e9];
            last[broken] = 0.1e9;
            let (on, off) = (last, [9e9, 9e9]);
            let seen = compared(&mut last, &[off, off], &[on, on]).expect("it was on");
            assert_eq!((seen.way, seen.on, seen.off), (broken, 0.1e9, 9e9));
        }
    }

    #[test]
    fn what_does_not_happen_again_is_not_believed() {
        let mut last = [1e9, 4e9];
        let seen = compared(
            &mut last,
            &[[1e9, 9e9], [2e9, 4e9]],
            &[[1e9, 3e9], [3e9, 2e9]],
        );
        let seen = seen.expect("it was on");
        assert_eq!((seen.way, seen.on, seen.off), (1, 4e9, 4e9));
        assert_eq!(last, [3e9, 2e9], "the next trial begins with those");
    }

    #[test]
    fn what_is_off_already_takes_no_stream() {
        let mut last = [1e9, 1e9];
        assert_eq!(compared(&mut last, &[], &[]), None);
    }
}

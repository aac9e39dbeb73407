//! The longest packet that passes, and what becomes of longer ones.

use std::time::Duration;

use plumbline_harness::TargetError;

use super::post::{Heading, Posts, TrainShape};
use super::seen::SizeSeen;

/// Datagrams of one size; one that arrives is enough.
const FEW: u32 = 3;
const GAP: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_millis(60);
/// Of those whose loss is believed.
const MORE: u32 = 6;
const MORE_PATIENCE: Duration = Duration::from_millis(300);
/// Answers that are followed, each with a smaller size.
const ANSWERS: usize = 5;
/// Sizes that arrive on every path that is any good: RFC 791 and RFC 8200.
const LEAST_V4: u32 = 68;
const LEAST_V6: u32 = 1280;

/// What came of some datagrams of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SizeOutcome {
    Arrived,
    /// By the own stack.
    Refused,
    Answered(plumbline_protocol::MtuAnswer),
    Swallowed,
}

/// Finds it out for one way, on which small ones arrive.
pub(super) fn find(posts: &Posts, way: Heading<'_>) -> Result<SizeSeen, TargetError> {
    let least = match way.at.is_ipv4() {
        true => LEAST_V4,
        false => LEAST_V6,
    };
    let try_some = |packet_bytes: u32, count: u32, patience: Duration| {
        let datagrams = TrainShape {
            count,
            packet_bytes,
            gap: GAP,
            patience,
        };
        let (sent, taken) = posts.train(way, datagrams)?;
        let passage = match sent.answer {
            _ if taken.arrived > 0 => SizeOutcome::Arrived,
            Some(answer) => SizeOutcome::Answered(answer),
            None if sent.refused > 0 => SizeOutcome::Refused,
            None => SizeOutcome::Swallowed,
        };
        Ok::<_, TargetError>((passage, sent.limit))
    };
    // A loss is believed only when it happens again.
    let attempt = |packet_bytes: u32| match try_some(packet_bytes, FEW, PATIENCE)? {
        (SizeOutcome::Swallowed, _) => Ok(try_some(packet_bytes, MORE, MORE_PATIENCE)?.0),
        (passage, _) => Ok(passage),
    };
    let (_, limit) = try_some(least.max(100), FEW, PATIENCE)?;
    let mut seen = search(least, limit, attempt)?;
    let beyond = limit + 1;
    seen.is_refused = beyond <= u32::from(u16::MAX) && attempt(beyond)? == SizeOutcome::Refused;
    Ok(seen)
}

/// Finds the longest that passes between two sizes, of which the smaller one does.
fn search<E>(
    least: u32,
    limit: u32,
    mut attempt: impl FnMut(u32) -> Result<SizeOutcome, E>,
) -> Result<SizeSeen, E> {
    let mut seen = SizeSeen {
        limit,
        ..SizeSeen::default()
    };
    let mut size = limit;
    for _ in 0..ANSWERS {
        match attempt(size)? {
            SizeOutcome::Arrived => {
                seen.largest = size;
                return Ok(seen);
            }
            SizeOutcome::Answered(answer) => {
                seen.answer = Some(answer);
                // One that says no size, or none that is less, is no help.
                if answer.mtu < least || answer.mtu >= size {
                    break;
                }
                size = answer.mtu;
            }
            // What was answered before is known by now.
            SizeOutcome::Refused => break,
            SizeOutcome::Swallowed => {
                seen.swallowed = Some(size);
                break;
            }
        }
    }
    let (mut passes, mut fails) = (least, size);
    while fails - passes > 1 {
        let middle = passes.midpoint(fails);
        match attempt(middle)? {
            SizeOutcome::Arrived => passes = middle,
            passage => {
                fails = middle;
                if passage == SizeOutcome::Swallowed {
                    seen.swallowed = Some(middle);
                }
            }
        }
    }
    seen.largest = passes;
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use plumbline_protocol::MtuAnswer;

    use super::*;

    const ROUTER: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1));

    fn searched(limit: u32, attempt: impl Fn(u32) -> SizeOutcome) -> SizeSeen {
        search::<()>(68, limit, |size| Ok(attempt(size))).unwrap()
    }

    #[test]
    fn what_the_own_stack_sends_arrives() {
        let seen = searched(1500, |_| SizeOutcome::Arrived);
        assert_eq!(
            (seen.largest, seen.swallowed, seen.answer),
            (1500, None, None)
        );
    }

    #[test]
    fn a_black_hole_is_found_to_the_byte() {
        let seen = searched(1500, |size| match size <= 1371 {
            true => SizeOutcome::Arrived,
            false => SizeOutcome::Swallowed,
        });
        assert_eq!((seen.largest, seen.swallowed), (1371, Some(1372)));
    }

    #[test]
    fn answers_are_followed_and_then_believed() {
        let seen = searched(1500, |size| match size {
            ..=1300 => SizeOutcome::Arrived,
            1301..=1400 => SizeOutcome::Answered(MtuAnswer {
                mtu: 1300,
                router: ROUTER,
            }),
            _ => SizeOutcome::Answered(MtuAnswer {
                mtu: 1400,
                router: ROUTER,
            }),
        });
        assert_eq!((seen.largest, seen.swallowed), (1300, None));
        assert_eq!(seen.answer.unwrap().mtu, 1300);
    }

    #[test]
    fn an_answer_may_hide_a_black_hole() {
        let answer = MtuAnswer {
            mtu: 1400,
            router: ROUTER,
        };
        let seen = searched(1500, |size| match size {
            ..=1300 => SizeOutcome::Arrived,
            1301..=1400 => SizeOutcome::Swallowed,
            _ => SizeOutcome::Answered(answer),
        });
        assert_eq!((seen.largest, seen.swallowed), (1300, Some(1301)));
        assert_eq!(seen.answer, Some(answer));
    }
}

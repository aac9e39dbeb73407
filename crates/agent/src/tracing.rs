//! Following requests through the kernel, where this agent may load programs into it.

use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plumbline_protocol::{Followed, TraceAnswer, TraceOrder};
use plumbline_tracer::{AtSockets, DropWatch, Tracer, TracerError, own_place};

/// What an agent looks into its kernel with: programs, once they are loaded.
#[derive(Clone, Default)]
pub(crate) struct Tracing {
    requests: Arc<Mutex<Option<Tracer>>>,
    drops: Arc<Mutex<Option<DropWatch>>>,
}

impl Tracing {
    /// Carries out an order.
    pub(crate) fn answer(&self, order: &TraceOrder) -> Result<TraceAnswer, Box<dyn Error>> {
        Ok(match order {
            TraceOrder::Place => TraceAnswer::Place(own_place()?),
            TraceOrder::Follow(followed) => begun(self.follow(followed))?,
            TraceOrder::Tell => {
                let mut tracer = lock(&self.requests);
                let tracer = tracer.as_mut().ok_or("nobody is followed here")?;
                TraceAnswer::Seen(tracer.end()?)
            }
            TraceOrder::WatchDrops { key, payload_bytes } => {
                begun(self.watch_drops(*key, *payload_bytes))?
            }
            TraceOrder::TellDrops => {
                let mut watch = lock(&self.drops);
                let watch = watch.as_mut().ok_or("nothing is watched here")?;
                let drops = watch.end()?;
                TraceAnswer::Dropped { drops }
            }
        })
    }

    fn follow(&self, followed: &Followed) -> Result<(), TracerError> {
        let mut tracer = lock(&self.requests);
        let loaded = match tracer.take() {
            Some(loaded) => loaded,
            None => Tracer::load(AtSockets::default())?,
        };
        tracer.insert(loaded).begin(followed)
    }

    fn watch_drops(&self, key: [u8; 8], payload_bytes: u32) -> Result<(), TracerError> {
        let mut watch = lock(&self.drops);
        let loaded = match watch.take() {
            Some(loaded) => loaded,
            None => DropWatch::load()?,
        };
        watch.insert(loaded).begin(key, payload_bytes)
    }
}

/// What programs that were to run are answered by.
fn begun(outcome: Result<(), TracerError>) -> Result<TraceAnswer, TracerError> {
    match outcome {
        Ok(()) => Ok(TraceAnswer::Follows),
        Err(TracerError::Unsupported { needs }) => Ok(TraceAnswer::Lacks { needs }),
        Err(error) => Err(error),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_takes_no_right_and_what_was_not_begun_is_not_told() {
        let tracing = Tracing::default();
        let place = tracing.answer(&TraceOrder::Place);
        assert!(matches!(place, Ok(TraceAnswer::Place(_))), "{place:?}");
        let told = tracing.answer(&TraceOrder::Tell).unwrap_err();
        assert!(told.to_string().contains("nobody is followed"), "{told}");
        let told = tracing.answer(&TraceOrder::TellDrops).unwrap_err();
        assert!(told.to_string().contains("nothing is watched"), "{told}");
    }
}

//! Following requests through the kernel, where this agent may load programs into it.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use plumbline_protocol::{Followed, TraceAnswer, TraceOrder};
use plumbline_tracer::{Tracer, TracerError, own_place};

/// What an agent follows requests with: programs, once they are loaded.
#[derive(Clone, Default)]
pub(crate) struct Tracing(Arc<Mutex<Option<Tracer>>>);

impl Tracing {
    /// Carries out an order.
    pub(crate) fn answer(&self, order: &TraceOrder) -> Result<TraceAnswer, Box<dyn Error>> {
        Ok(match order {
            TraceOrder::Place => TraceAnswer::Place(own_place()?),
            TraceOrder::Follow(followed) => match self.follow(followed) {
                Ok(()) => TraceAnswer::Follows,
                Err(TracerError::Unsupported { needs }) => TraceAnswer::Lacks { needs },
                Err(error) => return Err(error.into()),
            },
            TraceOrder::Tell => {
                let mut tracer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                let tracer = tracer.as_mut().ok_or("nobody is followed here")?;
                TraceAnswer::Seen(tracer.end()?)
            }
        })
    }

    fn follow(&self, followed: &Followed) -> Result<(), TracerError> {
        let mut tracer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = match tracer.take() {
            Some(loaded) => loaded,
            None => Tracer::load()?,
        };
        tracer.insert(loaded).begin(followed)
    }
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
    }
}

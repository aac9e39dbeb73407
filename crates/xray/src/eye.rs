//! What looks: programs at tracepoints, or taps.

use plumbline_experiment::Workload;
use plumbline_tracer::{Tracer, TracerError};

use crate::account::TRACEPOINTS;
use crate::error::XrayError;
use crate::order::XrayOrder;
use crate::taps;

/// Share of the requests that the kernel stamps at the sender's socket, where taps do not see
/// where the send call ends. Each costs the sender some microseconds.
const STAMPED: f64 = 0.02;

/// What looks at packets.
#[derive(Debug)]
pub(crate) enum Eye {
    /// Programs at the kernel's tracepoints.
    Tracer(Tracer),
    /// The same, for each node's half of the way apart.
    Halves([Tracer; 2]),
    /// Taps on the devices.
    Taps,
}

impl Eye {
    /// The programs where they may be loaded, else taps; `say` hears why.
    pub(crate) fn open(order: XrayOrder, say: &dyn Fn(&str)) -> Result<Self, XrayError> {
        if order.taps {
            return Ok(Self::Taps);
        }
        let load = || Tracer::load(order.at_sockets.unwrap_or_default());
        if order.by_node {
            return Ok(Self::Halves([load()?, load()?]));
        }
        match load() {
            Ok(tracer) => Ok(Self::Tracer(tracer)),
            Err(error) if order.netfilter || order.at_sockets.is_some() => Err(error.into()),
            Err(TracerError::Unsupported { needs }) => {
                say(&format!(
                    "taps on the devices look instead of programs in the kernel, and see fewer \
                     places: {needs}"
                ));
                Ok(Self::Taps)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The share of requests that it follows, one in so many, where this is asked for.
    pub(crate) fn one_in(&self, asked: u64) -> u64 {
        match self {
            Self::Tracer(_) | Self::Halves(_) => asked,
            Self::Taps => taps::one_in(asked).into(),
        }
    }

    /// Its name in results.
    pub(crate) fn by(&self) -> &'static str {
        match self {
            Self::Tracer(_) | Self::Halves(_) => TRACEPOINTS,
            Self::Taps => "taps",
        }
    }

    /// The load as it is while this looks.
    pub(crate) fn stamped(&self, workload: &Workload) -> Workload {
        let timestamps = match self {
            Self::Tracer(_) | Self::Halves(_) => 0.0,
            Self::Taps => STAMPED,
        };
        Workload {
            timestamps,
            ..workload.clone()
        }
    }
}

//! The devices of a path.

use std::sync::Arc;

use plumbline_harness::{Leg, Side};
use plumbline_record::DeviceCounters;

use crate::error::LabError;
use crate::place::Place;

/// A device that every packet from client to server crosses.
#[derive(Clone)]
pub struct Hop {
    /// Where it is.
    pub place: Arc<Place>,
    /// Its name there.
    pub device: String,
    /// Whether the device sends (as opposed to receives) what goes from client
    /// to server.
    pub sends: bool,
    /// Counts its packets in place of the kernel's own counters.
    pub meter: Option<Meter>,
}

/// Counts what a device carries, and puts it in place of what the kernel counted. Not
/// every kernel does: before 6.8 what eBPF puts straight into a pod's device was in none
/// of its counters.
pub type Meter = Arc<dyn Fn(&mut DeviceCounters) -> Result<(), LabError> + Send + Sync>;

impl Hop {
    /// A device that sends what goes from client to server.
    pub fn sends(place: &Arc<Place>, device: &str) -> Self {
        Self {
            place: Arc::clone(place),
            device: device.into(),
            sends: true,
            meter: None,
        }
    }

    /// A device that receives what goes from client to server.
    pub fn receives(place: &Arc<Place>, device: &str) -> Self {
        Self {
            sends: false,
            ..Self::sends(place, device)
        }
    }

    /// With a meter in place of the kernel's counters.
    pub fn metered(mut self, meter: Meter) -> Self {
        self.meter = Some(meter);
        self
    }

    /// What it has to have carried.
    pub(crate) fn leg(&self) -> Leg {
        Leg {
            devices: vec![(self.place.name.clone(), self.device.clone())],
            side: if self.sends {
                Side::Sends
            } else {
                Side::Receives
            },
            is_private: true,
        }
    }
}

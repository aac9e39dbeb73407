//! What was seen of a path, before anybody judges it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use plumbline_protocol::{
    MtuAnswer, OffloadGroup, ResolvedName, SentStream, SentTrain, Survey, SurveyedDevice,
    TakenTrain,
};

/// All that was seen of a path.
#[derive(Clone, Debug, Default)]
pub(super) struct PathSeen {
    /// The command that looks at it, as it was typed.
    pub(super) command: String,
    /// From the client to the server, and back.
    pub(super) ways: [WaySeen; 2],
    /// Every place that could be looked at, in the order from client to server.
    pub(super) places: Vec<PlaceSeen>,
    /// The other IP version, where both ends have addresses of it.
    pub(super) other_version: Option<OtherVersion>,
    /// How the cluster's name server answers the client, where that is a pod of one.
    pub(super) name: Option<ResolvedName>,
    /// What would lead each direction by the devices of the other, by place.
    pub(super) returns: Vec<RouteReturn>,
    /// What switching offloads off did, where that was tried.
    pub(super) trials: Option<Vec<OffloadTrial>>,
}

/// One direction of a path.
#[derive(Clone, Debug, Default)]
pub(super) struct WaySeen {
    /// Names of the ends.
    pub(super) from: String,
    pub(super) to: String,
    /// The address that packets are sent to.
    pub(super) at: String,
    /// The device that packets leave the first end by.
    pub(super) device: String,
    /// Bytes of the headers of IP and TCP.
    pub(super) headers: u32,
    pub(super) size: SizeSeen,
    /// One train, or two where the first was not whole.
    pub(super) trains: Vec<TrainSeen>,
    pub(super) stream: SentStream,
}

/// What packets of growing size came to, in bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct SizeSeen {
    /// The longest packet that the own stack sends there.
    pub(super) limit: u32,
    /// The longest that arrived.
    pub(super) largest: u32,
    /// The shortest that did not, of those that the own stack sent and nobody answered.
    pub(super) swallowed: Option<u32>,
    /// What was answered to the longest.
    pub(super) answer: Option<MtuAnswer>,
    /// Whether the own stack refused one that was a byte longer than its limit.
    pub(super) is_refused: bool,
}

/// A train of small datagrams.
#[derive(Clone, Debug, Default)]
pub(super) struct TrainSeen {
    pub(super) sent: SentTrain,
    pub(super) taken: TakenTrain,
    /// Datagrams that the receiver's own buffer had no room for.
    pub(super) overrun: u64,
    /// The devices on the way in its order, and how many packets each carried meanwhile.
    pub(super) carried: Vec<(String, u64)>,
    /// Of each place, the devices that carried about as many as were sent.
    pub(super) crossed: BTreeMap<String, Vec<String>>,
    /// Of these, the devices by which it left the place.
    pub(super) sent_by: BTreeMap<String, Vec<String>>,
    /// What of it the kernel dropped, and why; or words for why that was not seen. `None` where
    /// nobody looked.
    pub(super) dropped: Option<Result<Vec<DroppedThere>, String>>,
    /// The devices, each with its place, whose own counts of drops and errors grew meanwhile, and
    /// by how much.
    pub(super) device_drops: Vec<(String, u64)>,
}

/// Datagrams that the kernel dropped in one place.
#[derive(Clone, Debug)]
pub(super) struct DroppedThere {
    /// A device and its place.
    pub(super) at: String,
    /// The kernel's word for why.
    pub(super) reason: String,
    pub(super) packets: u64,
}

impl TrainSeen {
    /// Datagrams that were lost on the way.
    pub(super) fn lost(&self) -> u64 {
        let lost = self.sent.sent.saturating_sub(self.taken.arrived);
        u64::from(lost).saturating_sub(self.overrun)
    }
}

impl WaySeen {
    /// Whether anything arrived.
    pub(super) fn is_open(&self) -> bool {
        self.trains.iter().any(|it| it.taken.arrived > 0)
    }

    pub(super) fn name(&self) -> String {
        format!("from {} to {}", self.from, self.to)
    }
}

/// A place on the path, before and after.
#[derive(Clone, Debug, Default)]
pub(super) struct PlaceSeen {
    pub(super) name: String,
    pub(super) before: Survey,
    pub(super) after: Survey,
}

impl PlaceSeen {
    /// How much the counters have grown whose names these are, by name; those that have not
    /// are left out.
    pub(super) fn grown(&self, is_meant: impl Fn(&str) -> bool) -> BTreeMap<&str, u64> {
        let after = self.after.counters.iter();
        let grown = after.filter(|(name, _)| is_meant(name)).map(|(name, now)| {
            let before = self.before.counters.get(name).copied().unwrap_or_default();
            (name.as_str(), now.saturating_sub(before))
        });
        grown.filter(|(_, more)| *more > 0).collect()
    }

    pub(super) fn device(&self, name: &str) -> Option<&SurveyedDevice> {
        self.after.devices.iter().find(|it| it.name == name)
    }
}

/// The other IP version between both ends.
#[derive(Clone, Debug)]
pub(super) struct OtherVersion {
    /// `4` or `6`.
    pub(super) version: u8,
    /// An address of the server.
    pub(super) address: String,
    /// The server's device that has it, and the length of its prefix in bits.
    pub(super) device: String,
    pub(super) prefix: u8,
    /// Whether the client has a route to it.
    pub(super) has_route: bool,
    /// Whether anything arrived there.
    pub(super) is_open: bool,
    /// What the client's own stack said.
    pub(super) error: Option<String>,
}

/// A place that what comes back leaves by another device than what goes there comes by.
#[derive(Clone, Debug)]
pub(super) struct RouteReturn {
    pub(super) place: String,
    /// The device that what goes there comes by.
    pub(super) device: String,
    /// Whom it would have to be given to there; reached by that device.
    pub(super) gateway: IpAddr,
    /// Whom it is for.
    pub(super) to: IpAddr,
}

/// A stream with something switched off in one place, beside streams without.
#[derive(Clone, Debug)]
pub(super) struct OffloadTrial {
    pub(super) place: String,
    pub(super) devices: Vec<String>,
    pub(super) offload: OffloadGroup,
    /// From where to where, of the direction that gains most.
    pub(super) way: String,
    /// Bits per second with it on: the best of those before and after.
    pub(super) on: f64,
    /// The worst with it off.
    pub(super) off: f64,
}

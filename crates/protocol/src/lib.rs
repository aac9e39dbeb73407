//! What a controller and an agent say to each other: [`ToAgent`] and [`FromAgent`] in
//! frames over a byte stream, and the orders and answers in them.
//!
//! The controller need not run on Linux, and neither does anything here.

mod frame;
mod launch;
mod message;
mod probe;
mod secret;
mod sight;
mod sounding;
mod toil;
mod trace;
mod watch;

pub use frame::{FrameError, MAX_FRAME, read_frame, write_frame};
pub use launch::{LAUNCHED, LENT, LaunchedOrder, MeetOrder, MeetingPhase, MetPod};
pub use message::{
    ClockReading, EnduredLoad, FromAgent, LoadOrder, PROTOCOL_VERSION, SenderMeasurement,
    ServeOrder, Served, ToAgent,
};
pub use probe::{ProbeOrder, Probed};
pub use secret::{Secret, SecretLength};
pub use sight::{LocalAddress, LookOrder, MissingServer, NamespaceCounters, Sight, Way};
pub use sounding::{
    MtuAnswer, OffloadGroup, ResolveOrder, ResolvedName, SentStream, SentTrain, SoundOrder,
    Sounded, StreamOrder, Survey, SurveyedDevice, TakenTrain, TrainOrder,
};
pub use toil::{Toil, ToilOrder, Toiled};
pub use trace::{
    DroppedDatagrams, Followed, FollowedPart, Hook, TraceAnswer, TraceOrder, TracedDevice,
    TracedDrop, TracedPlace, TracedRoute, TracedStep, Traces,
};
pub use watch::{IdleTime, MachineGains, WatchOrder, Watched};

//! What a metric counts.

/// What a metric counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Nanoseconds for each byte, the same as seconds for each gigabyte.
    NanosecondsPerByte,
    /// Bits per second.
    BitsPerSecond,
    /// Sent for each that arrived: above 1 by what was lost.
    SentPerReceived,
    /// Requests per second.
    RequestsPerSecond,
}

impl Unit {
    /// As keys of JSON and columns of CSV have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::NanosecondsPerByte => "ns_per_byte",
            Self::BitsPerSecond => "bits_per_second",
            Self::SentPerReceived => "sent_per_received",
            Self::RequestsPerSecond => "requests_per_second",
        }
    }
}

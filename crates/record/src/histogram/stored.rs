//! Histograms as files hold them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::{Histogram, HistogramError};

/// The stored form: base64 of HDR V2, the exact maximum beside it.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Histogram")]
struct Stored {
    /// Base64 of the HdrHistogram V2 encoding (uncompressed), values in nanoseconds.
    hdr_v2: String,
    /// Number of values counted.
    count: u64,
    /// Exact maximum in nanoseconds.
    max_ns: u64,
    /// Values above 60 s.
    overflow: u64,
}

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let stored = Stored {
            hdr_v2: STANDARD.encode(self.encode()),
            count: self.len(),
            max_ns: self.max_ns,
            overflow: self.overflow,
        };
        stored.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = Stored::deserialize(deserializer)?;
        let histogram = STANDARD
            .decode(&stored.hdr_v2)
            .map_err(HistogramError::from)
            .and_then(|bytes| Self::decode(&bytes, stored.max_ns, stored.overflow))
            .map_err(serde::de::Error::custom)?;
        if histogram.len() != stored.count {
            return Err(serde::de::Error::custom(format!(
                "a histogram holds {} values but says {}",
                histogram.len(),
                stored.count
            )));
        }
        if histogram.overflow() > histogram.len() {
            return Err(serde::de::Error::custom(format!(
                "a histogram holds {} values, and says that {} of them are above 60 s",
                histogram.len(),
                histogram.overflow()
            )));
        }
        Ok(histogram)
    }
}

impl schemars::JsonSchema for Histogram {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        Stored::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Stored::json_schema(generator)
    }
}

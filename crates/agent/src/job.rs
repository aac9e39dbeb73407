//! How what was ordered ends.

use std::error::Error;

use plumbline_protocol::FromAgent;

/// What came of an order, or why it could not be carried out.
pub(crate) type JobOutcome = Result<FromAgent, Box<dyn Error>>;

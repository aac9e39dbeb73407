//! CPU affinity and timer slack.

//! Reading and waiting for the monotonic clock.

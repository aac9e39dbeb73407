//! Bulk: bytes and datagrams that go one way.

mod backlog;
mod datagram;
mod stream;
mod tally;
mod train;
mod zero_copy;

pub(crate) use datagram::{Datagrams, MeterMessage};
pub(crate) use stream::{PERIOD, Stream};
pub(crate) use tally::Tally;
pub(crate) use train::train_of;

//! Bulk: bytes and datagrams that go one way.

mod datagram;
mod stream;
mod tally;
mod zero_copy;

pub(crate) use datagram::{Datagrams, MeterMessage, train_of};
pub(crate) use stream::{PERIOD, Stream};
pub(crate) use tally::Tally;

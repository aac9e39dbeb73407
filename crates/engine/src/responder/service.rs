//! What a server makes of the bytes of its connections.

use plumbline_record::ServeResult;
use plumbline_sys::clock::now_ns;

/// Reads requests and gives their answers, of one workload.
pub(super) trait Service {
    /// How far the requests of one connection have been read.
    type Reader: Default;
    /// Which answer it is.
    type Answer: Copy;

    /// Reads on, at most to the end of one request. Gives how many bytes it took,
    /// and what follows from them.
    fn read(
        &mut self,
        reader: &mut Self::Reader,
        bytes: &[u8],
        seen: &mut ServeResult,
    ) -> (usize, RequestStep<Self::Answer>);

    /// The bytes of an answer from its byte `from` on: some of them where any are
    /// left, none at its end.
    fn piece(&mut self, answer: Self::Answer, from: usize) -> &[u8];
}

/// How far a request has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestStep<A> {
    /// Inside a request, or after one that wants no answer; all bytes were taken.
    More,
    /// It is to be answered.
    Answer(A),
    /// It is to be answered, and then the connection is closed.
    Last(A),
    /// This is not what a client of ours sends: the connection is closed.
    Wrong,
}

/// Computes for so many nanoseconds, as a server does that has work to do.
pub(super) fn think(length_ns: u64) {
    if length_ns > 0 {
        let end = now_ns() + length_ns;
        while now_ns() < end {
            std::hint::spin_loop();
        }
    }
}

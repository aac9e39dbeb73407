//! A stream as a server of HTTP reads it: in pieces of any size the answers are the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plumbline_engine::fuzzing::http_served;

fuzz_target!(|input: &[u8]| {
    let [size, stream @ ..] = input else { return };
    let in_pieces = http_served(stream, usize::from(*size) + 1);
    assert_eq!(in_pieces, http_served(stream, stream.len().max(1)));
});

//! A stream as a client of HTTP reads it: in pieces of any size it is the same. And as an answer
//! in which kube-proxy or nginx says something of itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plumbline_engine::fuzzing::http_answers;

fuzz_target!(|input: &[u8]| {
    let [options, stream @ ..] = input else {
        return;
    };
    let verify = options & 0x80 != 0;
    let in_pieces = http_answers(stream, usize::from(options & 0x7f) + 1, verify);
    assert_eq!(in_pieces, http_answers(stream, stream.len().max(1), verify));
    plumbline_agent::fuzzing::answers(stream);
});

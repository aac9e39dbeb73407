//! Datagrams that come over the network: heads of trains, answers of a name server, what pods
//! say to their peer, and messages of a load, which come in a stream too.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    plumbline_agent::fuzzing::datagram(bytes);
    plumbline_engine::fuzzing::messages(bytes, 7);
});

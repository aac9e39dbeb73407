//! Frames between controller and agent, in both directions: what is read is written alike.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plumbline_protocol::{FromAgent, ToAgent, read_frame, write_frame};
use serde_json::to_value;

fuzz_target!(|stream: &[u8]| {
    let mut rest = stream;
    while let Ok(message) = read_frame::<FromAgent>(&mut rest) {
        let mut frame = Vec::new();
        write_frame(&mut frame, &message).expect("it fitted into a frame");
        let again: FromAgent = read_frame(&mut &frame[..]).expect("we wrote it");
        assert_eq!(to_value(&message).ok(), to_value(&again).ok());
    }
    let mut rest = stream;
    while let Ok(message) = read_frame::<ToAgent>(&mut rest) {
        let mut frame = Vec::new();
        write_frame(&mut frame, &message).expect("it fitted into a frame");
        let again: ToAgent = read_frame(&mut &frame[..]).expect("we wrote it");
        assert_eq!(to_value(&message).ok(), to_value(&again).ok());
    }
});

//! What fuzzing targets reach of this crate.

use plumbline_experiment::{Workload, WorkloadKind};

use crate::LoadPlan;
use crate::codec::{Codec, DecodeStep, Http};
use crate::responder::answers_to;

/// `http` with a body of 16 bytes, so that an input may hold it.
fn workload() -> Workload {
    Workload {
        response_size: 16,
        ..Workload::of_kind(WorkloadKind::Http)
    }
}

/// What a client makes of a stream that comes in pieces of so many bytes: one line for
/// each answer, and one where it is no longer HTTP. `verify` says whether bodies have to
/// be those of our server.
///
/// # Panics
///
/// When the client stands still, or reads the same stream differently once it knows its
/// heads.
pub fn http_answers(stream: &[u8], piece_bytes: usize, verify: bool) -> Vec<String> {
    let plan = LoadPlan {
        verify,
        ..LoadPlan::new(workload(), ([127, 0, 0, 1], 80).into())
    };
    let mut client = Http::new(&plan, &[]);
    let first = steps(&mut client, stream, piece_bytes);
    assert_eq!(steps(&mut client, stream, piece_bytes), first);
    first.iter().map(|step| format!("{step:?}")).collect()
}

fn steps(client: &mut Http, stream: &[u8], piece_bytes: usize) -> Vec<DecodeStep> {
    let mut reader = <Http as Codec>::Reader::default();
    let mut steps = Vec::new();
    for mut piece in stream.chunks(piece_bytes) {
        while !piece.is_empty() {
            let (taken, step) = client.decode(&mut reader, piece);
            piece = &piece[taken..];
            match step {
                DecodeStep::More => assert!(piece.is_empty(), "a piece is left"),
                DecodeStep::Answer(answer) if !answer.last => {
                    assert!(taken > 0, "an answer out of nothing");
                    steps.push(step);
                }
                // The connection is closed.
                DecodeStep::Answer(_) | DecodeStep::Garbage => {
                    steps.push(step);
                    return steps;
                }
            }
        }
    }
    steps.extend(client.end(&mut reader).map(DecodeStep::Answer));
    steps
}

/// What a server answers to a stream that comes in pieces of so many bytes: each answer
/// whole, and whether it is that to a HEAD.
///
/// # Panics
///
/// When the server stands still, or an answer has no end.
pub fn http_served(stream: &[u8], piece_bytes: usize) -> Vec<(bool, Vec<u8>)> {
    answers_to(stream, piece_bytes, &workload())
}

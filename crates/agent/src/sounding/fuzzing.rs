//! What fuzzing targets reach of the readers of what comes while a path is sounded.

use super::resolve::{is_answer, of_cluster, question};
use super::train::TrainHead;

/// Reads the file that tells a pod its name server; whether it names one of a cluster.
///
/// # Panics
///
/// When what is asked for is no question.
pub(crate) fn configuration(text: &str) -> bool {
    let Some((_, name)) = of_cluster(text) else {
        return false;
    };
    let asked = question(7, &name);
    assert!(asked.len() <= name.len() + 18 && !is_answer(&asked, 7));
    true
}

/// Reads a datagram as the head of one of a train; whether it is long enough.
///
/// # Panics
///
/// When what was read is written otherwise.
pub(crate) fn head_of_train(bytes: &[u8]) -> bool {
    let Some(head) = TrainHead::read(bytes) else {
        return false;
    };
    let mut written = [0; 16];
    head.write(&mut written);
    assert!(bytes.starts_with(&written));
    true
}

/// Reads a datagram as the answer of a name server to a question.
///
/// # Panics
///
/// When it answers another question, too.
pub(crate) fn answer_of_name_server(bytes: &[u8], id: u16) -> bool {
    let is_answer_to = |id| is_answer(bytes, id);
    assert!(!(is_answer_to(id) && is_answer_to(!id)));
    is_answer_to(id)
}

//! What a server answered, when it ends.

use plumbline_experiment::{Workload, WorkloadKind};
use plumbline_record::{DatagramCounts, ServeResult};

use crate::number;

/// The counts of a server.
pub fn served(spec: &Workload, result: &ServeResult) -> String {
    let size = |bytes: u64| number::plain(&number::bytes(bytes as f64));
    let received = size(result.bytes_received);
    let mut text = match result.datagrams {
        Some(counts) => datagrams(&counts),
        None if spec.kind == WorkloadKind::Stream => {
            format!("{} connections, {received} received\n", result.connections)
        }
        None => format!(
            "{} connections, {} requests, {received} received, {} sent\n",
            result.connections,
            result.requests,
            size(result.bytes_sent)
        ),
    };
    if result.turned_away > 0 {
        text += &format!(
            "TURNED AWAY  {} connections: there may be 100,000 at once, and as many as this process may have files open; raise the hard limit (`ulimit -n` as root), or use fewer connections\n",
            result.turned_away
        );
    }
    if result.strangers > 0 {
        text += &format!(
            "DROPPED      {} connections and datagrams without the secret; they are in no other count\n",
            result.strangers
        );
    }
    if result.corrupt > 0 {
        text += &format!(
            "WRONG        {} were not what `load` sends with these sizes; start both ends with the same workload and sizes\n",
            result.corrupt
        );
    }
    text
}

/// The measured messages of all loads that came by.
fn datagrams(counts: &DatagramCounts) -> String {
    let sent = counts.received + counts.missing;
    let lost = if sent == 0 {
        0.0
    } else {
        counts.missing as f64 / sent as f64
    };
    format!(
        "{} messages received, {} lost ({:.3} %), {} reordered, {} twice; messages lost after the last one that arrived are not seen: \
         compare with what `load` sent\n",
        counts.received,
        counts.missing,
        lost * 100.0,
        counts.reordered,
        counts.duplicated
    )
}

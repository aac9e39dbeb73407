//! How many files connections take.

/// Files beside the connections: standard streams, epoll, pipes to the
/// controller, what is open for a moment.
const OTHER_FILES: u64 = 64;

/// Open files that this many connections take.
pub(crate) fn files_for(connections: u64) -> u64 {
    connections + OTHER_FILES
}

/// Connections that this many open files allow.
pub(crate) fn connections_in(files: u64) -> u64 {
    files.saturating_sub(OTHER_FILES)
}

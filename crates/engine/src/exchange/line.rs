//! One connection's place.

/// Where a line is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ConnectionState {
    /// No connection, and none needed before a request comes.
    #[default]
    Spare,
    /// The handshake is under way.
    Connecting,
    /// Ready for requests.
    Open,
    /// The last answer has arrived; the other side is about to close.
    Closing,
    /// Broken; to be opened again after a pause.
    Down,
}

/// One connection's place.
#[derive(Debug, Default)]
pub(super) struct ClientConnection<R> {
    pub(super) state: ConnectionState,
    /// When the state began.
    pub(super) since: u64,
    /// When it last became idle.
    pub(super) idle_since: u64,
    /// When it first could take a request.
    pub(super) open_since: u64,
    pub(super) reader: R,
    /// A request that the kernel took in part: its number, and the byte to
    /// continue from.
    pub(super) partial: Option<(u64, usize)>,
}

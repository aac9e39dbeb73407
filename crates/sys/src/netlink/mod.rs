//! Routing netlink over a small blocking socket.

//! A Target on one machine: network namespaces joined by a network.

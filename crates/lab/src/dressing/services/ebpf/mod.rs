//! Services as Cilium translates them, by eBPF: a lookup finds the service that is asked,
//! and others one of its endpoints, however many services there are.

pub(super) mod socket;
mod tables;
pub(super) mod tc;

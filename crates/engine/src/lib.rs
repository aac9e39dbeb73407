//! The load: arrival schedule, connections, workloads, the event loop, the responder.

//! Starting processes inside namespaces.

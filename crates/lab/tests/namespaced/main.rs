//! Tests in private namespaces: no root needed, nothing of the machine touched.

mod agents;
mod cni;
mod conformance;
mod eye;
mod link;
mod made;
mod packets;
mod policies;
mod proof;
mod renewal;
mod services;
mod undo;
mod wire;

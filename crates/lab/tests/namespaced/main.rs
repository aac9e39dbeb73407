//! Tests in private namespaces: no root needed, nothing of the machine touched.

mod agents;
mod cni;
mod conformance;
mod dressing;
mod eye;
mod launch;
mod link;
mod made;
mod neighbours;
mod packets;
mod policies;
mod proof;
mod renewal;
mod services;
mod shape;
mod tuning;
mod undo;
mod wire;

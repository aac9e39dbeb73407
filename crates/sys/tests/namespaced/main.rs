//! Tests in private namespaces: no root needed, nothing of the machine touched.

mod capture;
mod namespaces;
mod netlink;
mod processes;

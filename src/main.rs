//! Plumbline measures what a container network costs.

fn main() {}

//! Interrupt and termination as a flag.

//! Counters of the kernel: CPU, receive queues, protocols.

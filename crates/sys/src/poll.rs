//! Readiness of file descriptors (epoll).

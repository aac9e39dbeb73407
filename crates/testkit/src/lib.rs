//! Dev-only: unprivileged namespaces, fake target, fake clock.

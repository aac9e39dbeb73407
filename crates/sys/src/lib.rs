//! Linux, typed and safe from outside: namespaces, netlink, epoll, timers, sockets, counters.

//! A path whose receiver listens on a port that is known before it does.

use std::net::{IpAddr, SocketAddr};

use plumbline_harness::{AgentLink, Leg, Path, PathSnapshot, Site, TargetError};

/// A path whose receiver listens on a known port.
pub(crate) struct AtPort<'a> {
    path: &'a dyn Path,
    server: PortSite<'a>,
}

/// A site where a receiver has to listen on a port.
struct PortSite<'a> {
    site: &'a dyn Site,
    port: u16,
}

impl<'a> AtPort<'a> {
    /// On this port, unless the path has one of its own.
    pub(crate) fn new(path: &'a dyn Path, port: u16) -> Self {
        let site = path.server();
        let port = match site.port() {
            0 => port,
            own => own,
        };
        Self {
            path,
            server: PortSite { site, port },
        }
    }

    /// The port that the receiver listens on.
    pub(crate) fn listening_port(&self) -> u16 {
        self.server.port
    }

    /// The port that the sender sends to.
    pub(crate) fn asked_port(&self) -> u16 {
        let listening = SocketAddr::new(self.server.address(), self.server.port);
        self.path.front(listening).port()
    }
}

impl Path for AtPort<'_> {
    fn server(&self) -> &dyn Site {
        &self.server
    }

    fn further_servers(&self) -> Vec<&dyn Site> {
        self.path.further_servers()
    }

    fn client(&self) -> &dyn Site {
        self.path.client()
    }

    fn is_on_two_machines(&self) -> bool {
        self.path.is_on_two_machines()
    }

    fn front(&self, listening: SocketAddr) -> SocketAddr {
        self.path.front(listening)
    }

    fn snapshot(&self) -> Result<PathSnapshot, TargetError> {
        self.path.snapshot()
    }

    fn legs(&self) -> Vec<Leg> {
        self.path.legs()
    }

    fn check_policies(&self) -> Result<Option<String>, TargetError> {
        self.path.check_policies()
    }
}

impl Site for PortSite<'_> {
    fn name(&self) -> &str {
        self.site.name()
    }

    fn address(&self) -> IpAddr {
        self.site.address()
    }

    fn port(&self) -> u16 {
        self.port
    }

    fn start_agent(&self) -> Result<AgentLink, TargetError> {
        self.site.start_agent()
    }
}

//! What an agent is in the middle of, for the sentence about its end.

use plumbline_protocol::ToAgent;

/// Before any order.
pub(crate) const GREETING: &str = "while it was greeted";

/// What an agent does once it has this order; `None` where that changes nothing.
pub(crate) fn of(order: &ToAgent) -> Option<&'static str> {
    Some(match order {
        // The latter begins what another order has named.
        ToAgent::Ping | ToAgent::Begin { .. } => return None,
        ToAgent::Hello { .. } => GREETING,
        ToAgent::Serve(_) => "while it received",
        ToAgent::Load(_) | ToAgent::Endure(_) => "while it sent",
        ToAgent::Toil(_) => "while it worked",
        ToAgent::Look(_) => "while it looked at the machine",
        ToAgent::Count { .. } => "while it read counters",
        ToAgent::Rest { .. } => "while it measured the machine without load",
        ToAgent::Floor { .. } => "while it measured its floor",
        ToAgent::Clock => "while its clock was read",
        ToAgent::Watch(_) => "while it watched the CPUs",
        ToAgent::Listen { .. } | ToAgent::Connect { .. } => "while connections were tried",
        ToAgent::Meet(_) | ToAgent::Pass { .. } => "while pods were launched",
        ToAgent::Probe(_) => "while it tried connections",
        ToAgent::Sound(_) => "while it sounded the path",
        ToAgent::Trace(_) => "while it traced requests",
        ToAgent::Stop => "while what it saw was collected",
    })
}

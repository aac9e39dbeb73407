//! What the machine allows, checked before the first connection: a load that
//! runs out of files or ports half-way does not measure what was asked for.

use std::collections::BTreeSet;
use std::fs;

use plumbline_sys::cpu;

use crate::error::files_for;
use crate::{EngineError, LoadPlan};

/// The kernel's own ports to connect from, when no address of a family is bound.
const PORTS: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// Makes room for the connections of a plan, or says what prevents it.
pub(crate) fn check(plan: &LoadPlan) -> Result<(), EngineError> {
    let connections = u64::from(plan.workload.connections);
    let needed = files_for(connections);
    let limit = cpu::allow_open_files(needed)
        .map_err(EngineError::system("raising the open-file limit"))?;
    if needed > limit {
        return Err(EngineError::too_many_files(connections));
    }
    // Where the range cannot be read, the kernel will tell.
    let Some(ports) = local_ports() else {
        return Ok(());
    };
    let sources: BTreeSet<_> = plan.sources.iter().collect();
    let most = ports * sources.len().max(1) as u64;
    if connections > most {
        return Err(EngineError::TooManyPorts {
            target: plan.target,
            connections,
            most,
            sources: connections.div_ceil(ports.max(1)),
        });
    }
    Ok(())
}

/// How many ports one address has for connections to one target.
fn local_ports() -> Option<u64> {
    let text = fs::read_to_string(PORTS).ok()?;
    ports_in(&text)
}

fn ports_in(range: &str) -> Option<u64> {
    let mut bounds = range.split_whitespace().map(str::parse::<u16>);
    let (first, last) = (bounds.next()?.ok()?, bounds.next()?.ok()?);
    (first <= last).then(|| u64::from(last - first) + 1)
}

#[cfg(test)]
mod tests {
    use plumbline_experiment::{Workload, WorkloadKind};

    use super::*;
    use crate::error::connections_in;

    #[test]
    fn the_port_range_is_read() {
        assert_eq!(ports_in("32768\t60999\n"), Some(28_232));
        assert_eq!(ports_in("9 8"), None);
        assert_eq!(ports_in("no"), None);
        assert_eq!(ports_in("0 18446744073709551615"), None);
    }

    #[test]
    fn too_few_files_or_ports_are_told_with_what_would_do() {
        let plan = |connections| LoadPlan {
            workload: Workload {
                connections,
                ..Workload::of_kind(WorkloadKind::Rr)
            },
            ..LoadPlan::new(
                Workload::of_kind(WorkloadKind::Rr),
                ([127, 0, 0, 1], 9).into(),
            )
        };
        assert!(check(&plan(16)).is_ok());
        let limit = cpu::allow_open_files(u64::from(u32::MAX)).unwrap();
        let most = connections_in(limit);
        let error = check(&plan(u32::MAX)).unwrap_err();
        assert!(matches!(error, EngineError::TooManyFiles { .. }));
        let text = error.to_string();
        assert!(
            text.contains(&format!("at most {most} connections")),
            "{text}"
        );
        assert!(text.contains("ulimit -n"), "{text}");
        let ports = local_ports().unwrap();
        if most > ports {
            let text = check(&plan(ports as u32 + 1)).unwrap_err().to_string();
            assert!(text.contains("2 source addresses"), "{text}");
        }
    }
}

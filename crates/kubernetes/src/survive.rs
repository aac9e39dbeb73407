//! Commands of the user's that act on a cluster while traffic goes on.

use plumbline_experiment::Treatment;
use plumbline_harness::TargetError;

use crate::route::ClusterRoute;

/// Whether traffic that is to survive a command can go on the path of a treatment that
/// wants that. Services may stand beside it.
///
/// # Errors
///
/// [`TargetError::Unsupported`] under policies, which are for one port of TCP, and beside
/// neighbours, which end by themselves; a policy of its own on a path that is not between
/// two pods alone.
pub(crate) fn check(treatment: &Treatment, route: ClusterRoute) -> Result<(), TargetError> {
    let Some(survive) = treatment.task.survive() else {
        return Ok(());
    };
    let scene = &treatment.scene;
    let name = &survive.name;
    let (what, needs) = if !scene.policies.is_none() || !scene.neighbours.is_none() {
        (
            format!("the workload `{name}` under policies or beside neighbours"),
            "a path without them; services may stand beside it",
        )
    } else if survive.policy && route != ClusterRoute::Pod {
        (
            format!("`policy` of `{name}` on the path `{}`", route.name()),
            "the path `pod`, whose ends a policy selects: --network pod",
        )
    } else {
        return Ok(());
    };
    Err(TargetError::Unsupported {
        what,
        needs: needs.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use plumbline_experiment::{
        Launch, NeighbourKind, Placement, Scene, Survive, Task, Timing, Tuning, Variant, Workload,
        WorkloadKind,
    };

    use super::*;
    use crate::launch;
    use crate::route::ROUTES;

    type Change = fn(&mut Scene);

    fn treatment(task: Task, change: Change) -> Treatment {
        let mut scene = Scene::of("").by("pod");
        change(&mut scene);
        Treatment {
            id: 0,
            label: "pod".to_owned(),
            scene,
            copy: 1,
            task,
            timing: Timing {
                warm_up_ns: 1,
                measure_ns: 1,
                drain_ns: 0,
            },
            baseline: None,
        }
    }

    #[test]
    fn what_has_one_port_or_an_end_of_its_own_is_refused() {
        let policies = |it: &mut Scene| it.policies.count = 1;
        let neighbours = |it: &mut Scene| it.neighbours.kind = NeighbourKind::Cpu;
        let services = |it: &mut Scene| it.services.count = 9;
        let cases: [(Change, bool); 4] = [
            (policies, false),
            (neighbours, false),
            (services, true),
            (|_| (), true),
        ];
        for (change, is_possible) in cases {
            let treatment = treatment(Task::Survive(Survive::default()), change);
            let checked = check(&treatment, ClusterRoute::Pod);
            assert_eq!(checked.is_ok(), is_possible, "{treatment:?}");
        }
        let load = Task::from(Workload::of_kind(WorkloadKind::Rr));
        assert!(check(&treatment(load, policies), ClusterRoute::Pod).is_ok());
    }

    #[test]
    fn pods_beside_a_command_are_launched_where_others_are() {
        let services = |it: &mut Scene| it.services.count = 9;
        let same_node = |it: &mut Scene| it.placement = Placement::SameNode;
        let cases: [(Change, bool, bool); 4] = [
            (|_| (), false, true),
            (|_| (), true, false),
            (services, false, false),
            (same_node, false, false),
        ];
        for (change, policy, is_possible) in cases {
            let mut survive = Survive {
                policy,
                ..Survive::default()
            };
            let without = treatment(Task::Survive(survive.clone()), change);
            assert!(launch::check(&without).is_ok(), "{without:?}");
            survive.pods = Some(3);
            let treatment = treatment(Task::Survive(survive), change);
            let checked = launch::check(&treatment);
            assert_eq!(checked.is_ok(), is_possible, "{treatment:?}");
        }
    }

    /// Whose pods are made without what a variant sets.
    #[test]
    fn pods_are_launched_on_no_variant() {
        let variant = |it: &mut Scene| {
            it.variant = Some(Variant {
                name: "pod-cubic".to_owned(),
                tuning: Tuning::NONE,
            });
        };
        let survive = Survive {
            pods: Some(3),
            ..Survive::default()
        };
        for task in [Task::Launch(Launch::default()), Task::Survive(survive)] {
            assert!(launch::check(&treatment(task.clone(), |_| ())).is_ok());
            let refused = launch::check(&treatment(task, variant)).unwrap_err();
            assert!(refused.to_string().contains("variant"), "{refused}");
        }
        let without = treatment(Task::Survive(Survive::default()), variant);
        assert!(launch::check(&without).is_ok());
    }

    #[test]
    fn a_policy_selects_pods() {
        let of = |policy| {
            let survive = Survive {
                policy,
                ..Survive::default()
            };
            treatment(Task::Survive(survive), |_| ())
        };
        for route in ROUTES {
            assert!(check(&of(false), route).is_ok(), "{route:?}");
            let checked = check(&of(true), route);
            assert_eq!(checked.is_ok(), route == ClusterRoute::Pod, "{checked:?}");
        }
    }
}

//! Before the first trial: what a target has not declared is refused, the rest
//! is made.

use plumbline_experiment::{FACTORS, TaskKind, Treatment};

use crate::error::TargetError;
use crate::target::{Demand, Levels, Target};

/// Refuses what the target does not have, and has it make the rest.
///
/// # Errors
///
/// As [`refuse`], then whatever [`Target::prepare`] says.
pub fn prepare(target: &mut dyn Target, demand: &Demand<'_>) -> Result<(), TargetError> {
    refuse(target, demand)?;
    target.prepare(demand)
}

/// Refuses every level that is not the default, and every task that is no load, that the
/// target has not declared.
///
/// # Errors
///
/// [`TargetError::Unsupported`], for the first one.
pub fn refuse(target: &dyn Target, demand: &Demand<'_>) -> Result<(), TargetError> {
    for treatment in demand.treatments {
        refuse_unsupported(target, treatment)?;
        let kind = treatment.task.kind();
        if !target.does(kind) {
            return Err(TargetError::Unsupported {
                what: format!("the workload `{}`", treatment.task.name()),
                needs: format!(
                    "{}; the target {} does nothing of that kind as it is asked for",
                    where_done(kind),
                    target.name()
                ),
            });
        }
    }
    if demand.link.is_default() || target.shapes_link() {
        return Ok(());
    }
    Err(TargetError::Unsupported {
        what: "[link]".to_owned(),
        needs: format!(
            "a lab, whose nodes it joins; the target {} has links of its own, which Plumbline \
             does not touch: leave [link] out, or use --target lab",
            target.name()
        ),
    })
}

/// Where tasks of a kind are done.
fn where_done(kind: TaskKind) -> &'static str {
    match kind {
        TaskKind::Load(_) => "another target",
        TaskKind::Programming => "one pair of nodes of a cluster, --target kubernetes",
        TaskKind::Launch => {
            "a lab, --target lab, or one pair of nodes of a cluster, --target kubernetes"
        }
        TaskKind::Survive => "a lab, or one pair of nodes of a cluster",
    }
}

fn refuse_unsupported(target: &dyn Target, treatment: &Treatment) -> Result<(), TargetError> {
    for factor in FACTORS {
        let Some(level) = factor.departs(&treatment.scene) else {
            continue;
        };
        let also = match target.supports(factor.name) {
            Levels::Any => continue,
            Levels::These(levels) if levels.contains(&&*level) => continue,
            Levels::These(levels) => format!("only the default and {}", levels.join(", ")),
            Levels::Default => "only the default".to_owned(),
        };
        return Err(TargetError::Unsupported {
            what: format!("{} `{level}`", factor.name),
            needs: format!(
                "a target that has it, such as --target lab; the target {} has {also}",
                target.name()
            ),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use plumbline_experiment::{Launch, Link, Placement, Programming, Task};

    use super::*;
    use crate::planted::{PlantedTarget, plan};

    fn prepared(target: &mut PlantedTarget, change: fn(&mut Treatment)) -> Result<(), TargetError> {
        let mut treatments = plan(1, 0).treatments;
        change(&mut treatments[1]);
        prepare(
            target,
            &Demand {
                treatments: &treatments,
                first: &[0],
                link: Link::default(),
            },
        )
    }

    fn refusal(target: &mut PlantedTarget, change: fn(&mut Treatment)) -> String {
        let refused = prepared(target, change);
        let Err(error @ TargetError::Unsupported { .. }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(target.prepared(), 0, "refused before anything is made");
        error.to_string()
    }

    #[test]
    fn a_level_that_a_target_has_not_declared_is_refused() {
        let mut target = PlantedTarget::new([]);
        let placement = refusal(&mut target, |it| it.scene.placement = Placement::SameNode);
        for part in [
            "placement `same-node`",
            "the target planted has only the default",
        ] {
            assert!(placement.contains(part), "{placement}");
        }
        target.has("placement", Levels::These(&["on-the-moon"]));
        let placement = refusal(&mut target, |it| it.scene.placement = Placement::SameNode);
        assert!(
            placement.contains("the default and on-the-moon"),
            "{placement}"
        );
        target.has("placement", Levels::These(&["same-node"]));
        prepared(&mut target, |it| it.scene.placement = Placement::SameNode).unwrap();
        assert_eq!(target.prepared(), 1);
    }

    #[test]
    fn what_nothing_programs_cannot_be_changed() {
        let mut target = PlantedTarget::new([]);
        let change = |it: &mut Treatment| it.task = Task::Programming(Programming::default());
        let refused = refusal(&mut target, change);
        for part in ["`service-added`", "--target kubernetes"] {
            assert!(refused.contains(part), "{refused}");
        }
        target.does = |it| it == TaskKind::Programming || matches!(it, TaskKind::Load(_));
        prepared(&mut target, change).unwrap();
        let launch = |it: &mut Treatment| it.task = Task::Launch(Launch::default());
        let mut refused = PlantedTarget::new([]);
        refused.does = target.does;
        let refused = refusal(&mut refused, launch);
        assert!(refused.contains("--target lab"), "{refused}");
    }

    #[test]
    fn defaults_need_no_declaration() {
        let mut target = PlantedTarget::new([]);
        prepared(&mut target, |_| ()).unwrap();
        assert_eq!(target.prepared(), 1);
    }

    #[test]
    fn a_link_is_refused_where_the_target_makes_none() {
        let treatments = plan(1, 0).treatments;
        let demand = Demand {
            treatments: &treatments,
            first: &[0],
            link: Link {
                rate_bits: Some(1_000_000_000),
                ..Link::default()
            },
        };
        let error = prepare(&mut PlantedTarget::new([]), &demand).unwrap_err();
        assert!(error.to_string().contains("--target lab"), "{error}");
    }
}

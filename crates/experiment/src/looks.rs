//! When a run that is to end by its limits looks at them.

use std::time::Duration;

use crate::load::TimedTask;
use crate::metric::DECLARED;
use crate::{Plan, Sequential, SpecError, Task};

/// How many times as many blocks as the first look there are at most, where no budget says.
const MOST_ADDED: usize = 20;

/// Looks after `first` blocks, half as many again and so on, and after all that the budget
/// may have room for: the others are taken from the plan.
pub(crate) fn set_looks(plan: &mut Plan, first: usize, budget: Option<Duration>) {
    let most = match budget {
        // Phases are the least that a block takes. The conversion saturates.
        Some(budget) => (budget.as_secs_f64() / plan.phases_of(0).as_secs_f64()) as usize,
        None => first * MOST_ADDED,
    };
    let most = most.clamp(first, plan.blocks.len());
    plan.blocks.truncate(most);
    let next = |blocks: &usize| Some(blocks + blocks.div_ceil(2));
    let looks = std::iter::successors(Some(first), next);
    let mut looks: Vec<usize> = looks.take_while(|blocks| *blocks < most).collect();
    looks.push(most);
    plan.sequential = Some(Sequential {
        looks,
        // At most a week.
        budget_ns: budget.map(|budget| budget.as_nanos() as u64),
    });
}

/// Refuses limits that no number of blocks decides: of metrics that no workload shows.
pub(crate) fn check_limits(outline: &Plan, loads: &[TimedTask]) -> Result<(), SpecError> {
    if outline.limits.is_empty() {
        return Err(SpecError::nowhere(
            "a sequential run ends when its limits are decided, and there is none",
            "add [limits] with the largest overhead of a metric, such as p50 = \"3%\"",
        ));
    }
    let tasks = || loads.iter().map(|load| &load.task);
    let shown = DECLARED.iter().filter(|metric| {
        let role = |task: &Task| metric.role(task.traffic(), task.connects());
        tasks().any(|task| role(task).is_some())
    });
    let shown: Vec<&str> = shown.map(|metric| metric.name).collect();
    match outline
        .limits
        .keys()
        .find(|it| !shown.contains(&it.as_str()))
    {
        None => Ok(()),
        Some(limited) => Err(SpecError::nowhere(
            format!("no workload of this experiment shows `{limited}`, which is limited"),
            format!("limit one of {}, or add a workload", shown.join(", ")),
        )),
    }
}

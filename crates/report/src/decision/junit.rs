//! A decision as JUnit XML, which CI services show as tests: one for each limit. What is
//! undecided is an error and no failure: nothing was shown, and it must not pass either.

use askama::Template;

use super::shown::{allowed, sentence};
use super::{DecidedLimit, Decision};
use crate::compare::LimitOutcome;
use crate::number;

#[derive(Template)]
#[template(path = "decision.xml")]
struct Suite<'a> {
    decision: &'a Decision,
    cases: Vec<Case<'a>>,
    failures: usize,
    errors: usize,
    seconds: String,
    sentence: String,
    doubts: &'a [String],
}

struct Case<'a> {
    name: &'a str,
    /// What was found and what is allowed.
    found: String,
    outcome: LimitOutcome,
}

/// The XML.
pub fn render(decision: &Decision) -> String {
    let mut cases: Vec<Case<'_>> = decision.limits.iter().map(case).collect();
    if cases.is_empty() {
        // No tests would be shown as passed.
        cases.push(Case {
            name: "limits",
            found: "the run has no limits".to_owned(),
            outcome: LimitOutcome::Undecided,
        });
    }
    let count = |outcome| cases.iter().filter(|one| one.outcome == outcome).count();
    let suite = Suite {
        decision,
        failures: count(LimitOutcome::Broken),
        errors: count(LimitOutcome::Undecided),
        cases,
        seconds: format!("{:.3}", decision.took.as_secs_f64()),
        sentence: sentence(decision),
        doubts: &decision.doubts,
    };
    suite.render().expect("the template takes any text")
}

fn case(limit: &DecidedLimit) -> Case<'_> {
    Case {
        name: &limit.name,
        found: found(limit),
        outcome: limit.check.outcome,
    }
}

fn found(limit: &DecidedLimit) -> String {
    let why = limit.check.reason.as_deref();
    let change = limit.change.as_deref().or(why).unwrap_or("not measured");
    let interval = limit.interval.as_ref();
    let interval = interval.map_or(String::new(), |it| format!(" ({it})"));
    let allowed = allowed(limit);
    number::plain(&format!("{change}{interval}, allowed {allowed}"))
}

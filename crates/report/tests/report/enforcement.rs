//! Policies that did not act: nothing counts of the block, and that is said first.

use plumbline_experiment::Enforcer;
use plumbline_record::{GateFailure, NodeRules, Run, Trial, TrialStatus, Warning};
use plumbline_report::analysis::Notice;
use plumbline_report::terminal::{self, Style};
use plumbline_report::{Summary, html, json, markdown};

use crate::analysis::two;
use crate::documented;

/// In the third block a forbidden connection got through on vxlan.
fn without_enforcement() -> (Run, Vec<Trial>) {
    let (mut run, mut trials) = two().run();
    for treatment in &mut run.plan.treatments {
        let policies = &mut treatment.scene.policies;
        policies.count = 200;
        policies.enforcer = Enforcer::Cilium;
    }
    let mut of_block = trials.iter_mut().filter(|it| it.block == 2);
    let trial = of_block.find(|it| it.treatment == 1).unwrap();
    trial.status = TrialStatus::Invalid {
        gates: vec![GateFailure::NotEnforced {
            detail: "a connection to pod-b, 10.0.0.2:7000, that the policies forbid got through"
                .to_owned(),
        }],
    };
    (run, trials)
}

#[test]
fn nothing_counts_of_a_block_without_enforcement_until_it_is_measured_again() {
    let (run, mut trials) = without_enforcement();
    let summary = Summary::new(&run, &trials);
    for treatment in &summary.treatments {
        assert_eq!(treatment.account.kept, 9, "{}", treatment.treatment.label);
    }
    assert_eq!(
        summary.account.failures[0].reason,
        "in a block without enforcement"
    );
    let exhausted = |one: &Notice| matches!(one.warning, Warning::RetriesExhausted { .. });
    assert!(
        !summary.notices.iter().any(exhausted),
        "it was not tried again"
    );

    let again = trials.iter().filter(|it| it.block == 2).cloned();
    let again = again.map(|it| Trial {
        session: 1,
        status: TrialStatus::Valid,
        ..it
    });
    let again: Vec<_> = again.collect();
    trials.extend(again);
    let summary = Summary::new(&run, &trials);
    assert!(summary.treatments.iter().all(|it| it.account.kept == 10));
    assert!(
        matches!(summary.notices[0].warning, Warning::NotEnforced { .. }),
        "it is still said"
    );
}

#[test]
fn policies_that_did_not_act_are_said_before_all_else() {
    let (mut run, trials) = without_enforcement();
    run.warnings.insert(0, Warning::Steal { share: 0.2 });
    let summary = Summary::new(&run, &trials);
    let said = "200 policies by cilium were not enforced on vxlan: a connection to pod-b, \
                10.0.0.2:7000, that the policies forbid got through, in 1 of 10 blocks";
    let json = documented::read(&json::render(&summary));
    let first = json["warnings"][0].as_str().unwrap();
    assert!(first.starts_with(said), "{first}");
    let style = Style {
        width: 1_000,
        ..Style::default()
    };
    let answer = " costs ";
    for text in [
        terminal::render(&summary, style),
        markdown::render(&summary).replace('\\', ""),
        html::render(&summary, &run, &trials),
    ] {
        let at = text.find(said).unwrap_or_else(|| panic!("{text}"));
        assert!(at < text.find(answer).unwrap(), "{text}");
    }
}

#[test]
fn what_stood_on_the_nodes_is_told() {
    let (run, mut trials) = two().run();
    for trial in trials.iter_mut().filter(|it| it.treatment == 1) {
        let common = &mut trial.observation.as_mut().unwrap().common;
        common.rules = vec![NodeRules {
            namespace: "node1".to_owned(),
            rules: 25_003,
            chains: 10_004,
            connections: 1,
            ..NodeRules::default()
        }];
    }
    let summary = Summary::new(&run, &trials);
    let said = markdown::render(&summary).replace('\u{a0}', " ");
    let there = "| 25,003 rules, 10,004 chains, 1 tracked connection |";
    assert!(said.contains(there), "{said}");
    let report = documented::read(&json::render(&summary));
    let treatments = &report["treatments"];
    assert_eq!(treatments[1]["rules"][0]["rules"], 25_003);
    assert!(treatments[0].get("rules").is_none());
}

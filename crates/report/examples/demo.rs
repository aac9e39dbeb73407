//! Writes reports of synthetic figures, to look at:
//! `cargo run -p plumbline-report --example demo -- good.html rough.html wide.html laws.html`.
//! The second run was cut off, lost trials, and lacks a network. The third has 18 networks
//! under five workloads, whose table is to fit on one screen. In the fourth costs grow with a number.

#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../tests/report/fake.rs"]
mod fake;

use plumbline_record::{GateFailure, Run, Trial, TrialStatus, Warning};
use plumbline_report::{Summary, html, terminal};

fn main() -> std::io::Result<()> {
    let mut paths = std::env::args().skip(1);
    let mut fake = fake::Fake::new(&fake::networks());
    fake.samples = 30_000;
    let (run, trials) = fake.run();
    write(
        &paths.next().unwrap_or("good.html".to_owned()),
        &run,
        &trials,
    )?;
    let (run, trials) = rough(run, trials);
    write(
        &paths.next().unwrap_or("rough.html".to_owned()),
        &run,
        &trials,
    )?;
    let (run, mut trials) = fake::wide().run();
    for seen in trials.iter_mut().filter_map(|it| it.observation.as_mut()) {
        // As recorded since there are figures of the processes.
        seen.common.ksoftirqd_ns = Some(0);
    }
    write(
        &paths.next().unwrap_or("wide.html".to_owned()),
        &run,
        &trials,
    )?;
    let (run, trials) = fake::growing::laws();
    write(
        &paths.next().unwrap_or("laws.html".to_owned()),
        &run,
        &trials,
    )
}

fn write(path: &str, run: &Run, trials: &[Trial]) -> std::io::Result<()> {
    let summary = Summary::new(run, trials);
    std::fs::write(path, html::render(&summary, run, trials))?;
    let style = terminal::Style {
        colour: true,
        ..terminal::Style::default()
    };
    print!("{}", terminal::render(&summary, style));
    Ok(())
}

fn rough(mut run: Run, mut trials: Vec<Trial>) -> (Run, Vec<Trial>) {
    trials.truncate(108);
    for trial in trials.iter_mut().filter(|trial| trial.treatment % 7 == 5) {
        trial.status = TrialStatus::Failed {
            error: "the agent of vxlan ended before it was told to".to_owned(),
        };
        trial.observation = None;
    }
    trials[3].status = TrialStatus::Invalid {
        gates: vec![GateFailure::Disturbed {
            by: "other-load".to_owned(),
            amount: 0.21,
            limit: 0.05,
        }],
    };
    for (trial, share) in trials
        .iter_mut()
        .step_by(9)
        .zip([0.006, 0.02, 0.011, 0.008])
    {
        trial.warnings.push(Warning::Steal { share });
    }
    run.warnings.push(Warning::Unsupported {
        network: "ipvlan-l2".to_owned(),
        needs: "the kernel lacks the ipvlan driver (CONFIG_IPVLAN)".to_owned(),
    });
    (run, trials)
}

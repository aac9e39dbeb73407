//! Names and files from people who mean no good (S-7, S-8).

use plumbline_report::{Summary, compare, csv, html, json, markdown, terminal};

use crate::fake::{Fake, Network};

const SCRIPT: &str = "\"><script>alert(1)</script>";
const ESCAPE: &str = "\u{1b}[2Jgone\u{202e}txt";

fn named(label: &str) -> (plumbline_record::Run, Vec<plumbline_record::Trial>) {
    let (mut run, mut trials) = Fake::new(&[Network::same("host"), Network::same("evil")]).run();
    run.plan.question = label.to_owned();
    run.plan.experiment = label.to_owned();
    run.provenance.command.push(label.to_owned());
    run.provenance.started = label.to_owned();
    run.fingerprint.kernel = label.to_owned();
    run.fingerprint
        .sysctls
        .insert(label.to_owned(), label.to_owned());
    for treatment in &mut run.plan.treatments {
        if treatment.baseline.is_some() {
            treatment.label = label.to_owned();
        }
        treatment.scene.network = label.to_owned();
        treatment.task.load_mut().unwrap().name += label;
    }
    trials[0].status = plumbline_record::TrialStatus::Failed {
        error: label.to_owned(),
    };
    trials[1].observation.as_mut().unwrap().common.devices[0].device = label.to_owned();
    run.warnings.push(plumbline_record::Warning::Unsupported {
        network: label.to_owned(),
        needs: label.to_owned(),
    });
    (run, trials)
}

#[test]
fn no_name_becomes_markup() {
    let (run, trials) = named(SCRIPT);
    let summary = Summary::new(&run, &trials);
    let page = html::render(&summary, &run, &trials);
    assert!(!page.contains("<script"), "in HTML");
    assert!(page.contains("&#60;script") || page.contains("&lt;script"));
    assert!(
        !markdown::render(&summary).contains("<script"),
        "in Markdown"
    );
    let text = json::render(&summary);
    assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
}

#[test]
fn no_name_moves_the_cursor() {
    let (run, trials) = named(ESCAPE);
    let summary = Summary::new(&run, &trials);
    let compared = compare::compare(&[(run.clone(), trials.clone())], false).unwrap();
    let style = terminal::Style::default();
    for text in [
        terminal::render(&summary, style),
        compare::render(&compared, style),
        markdown::render(&summary),
        html::render(&summary, &run, &trials),
    ] {
        assert!(
            !text.contains('\u{1b}') && !text.contains('\u{202e}'),
            "{text}"
        );
    }
}

#[test]
fn no_name_breaks_a_table() {
    let (run, trials) = named("a|b\nc,d\"e");
    let summary = Summary::new(&run, &trials);
    for line in markdown::render(&summary)
        .lines()
        .filter(|line| line.contains(" | "))
    {
        assert!(line.starts_with("| ") && line.ends_with(" |"), "{line}");
    }
    let text = csv::render(&summary);
    assert!(text.contains("\"a|b\nc,d\"\"e\""), "{text}");
}

#[test]
fn no_name_is_a_formula() {
    let (run, trials) = named("=1+1");
    let text = csv::render(&Summary::new(&run, &trials));
    assert!(text.contains("\r\n'=1+1,"), "{text}");
}

#[test]
fn a_plan_that_points_nowhere_is_no_panic() {
    let (mut run, mut trials) = Fake::new(&[
        Network::same("host"),
        Network::same("one"),
        Network::same("two"),
    ])
    .run();
    run.plan.treatments[0].baseline = Some(99);
    run.plan.treatments[1].baseline = Some(2);
    run.plan.treatments[2].baseline = Some(1);
    run.plan.treatments[3].baseline = Some(3);
    run.plan.blocks.push(vec![77]);
    trials[3].treatment = 1_000;
    trials[4].block = u32::MAX;
    let summary = Summary::new(&run, &trials);
    let page = html::render(&summary, &run, &trials);
    assert!(page.contains("</html>"));
    assert!(!terminal::render(&summary, terminal::Style::default()).is_empty());
}

use plumbline_record::Warning;
use plumbline_report::terminal::Style;
use plumbline_report::{Summary, html, terminal};

use crate::fake::{self, Fake, Network};

fn render(fake: &Fake, style: Style) -> String {
    let (run, trials) = fake.run();
    terminal::render(&Summary::new(&run, &trials), style)
}

#[test]
fn the_tour_fits_80_columns() {
    let text = render(&Fake::new(&fake::networks()), Style::default());
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "too wide: {line}");
    }
    insta::assert_snapshot!(text);
}

#[test]
fn sentences_take_few_lines_however_many_networks_there_are() {
    let (mut run, trials) = fake::wide().run();
    run.warnings.extend([
        Warning::SharedCpus { cpus: 2 },
        Warning::ShorterWindows { share: 0.5 },
        Warning::Steal { share: 0.02 },
    ]);
    let text = terminal::render(&Summary::new(&run, &trials), Style::default());
    let paragraph = |end: &str| {
        let found = text.split("\n\n").find(|it| it.trim_end().ends_with(end));
        found.unwrap_or_else(|| panic!("{end}: {text}")).lines()
    };
    assert!(
        paragraph("more sentences in the page").count() <= 6,
        "{text}"
    );
    assert!(
        paragraph("more warnings in the page").count() <= 5,
        "{text}"
    );
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "too wide: {line}");
    }
}

#[test]
fn a_warning_names_few_treatments_and_counts_the_others() {
    for (warned, said) in [
        (
            12,
            "120 trials of host (rr), macvlan (rr), ipvlan-l2 (rr) and 9 others: the sender",
        ),
        (
            4,
            "40 trials of host (rr), macvlan (rr), ipvlan-l2 (rr), cilium (rr): the sender",
        ),
    ] {
        let (run, mut trials) = fake::wide().run();
        for trial in trials.iter_mut().filter(|one| one.treatment < warned) {
            trial.warnings.push(Warning::GeneratorBusy { share: 0.9 });
        }
        let text = terminal::render(&Summary::new(&run, &trials), Style::default());
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(said), "{text}");
    }
}

/// With all columns and a control, as the tour has them, and a network more.
#[test]
fn a_tour_of_which_much_is_to_be_said_has_at_most_45_lines() {
    let mut networks = fake::networks();
    networks.push(Network::same("host#2"));
    let (mut run, mut trials) = Fake::new(&networks).run();
    run.plan.controls = 1;
    run.warnings.extend([
        Warning::SharedCpus { cpus: 2 },
        Warning::ShorterWindows { share: 0.5 },
        Warning::Steal { share: 0.02 },
    ]);
    for trial in &mut trials {
        trial.observation.as_mut().unwrap().common.ksoftirqd_ns = Some(0);
        if trial.treatment > 0 {
            let busy = Warning::NearSaturation { share: 0.95 };
            trial.warnings.push(busy);
        }
    }
    let text = terminal::render(&Summary::new(&run, &trials), Style::default());
    let lines = text.lines().count();
    assert!(lines <= 45, "{lines} lines: {text}");
    for said in [
        "procs/GB",
        "a copy of it",
        "more sentences in",
        "more warnings in",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

/// A row of the page is a line of text, and a screen has room for some thirty.
#[test]
fn eighteen_paths_by_five_workloads_are_one_table_of_the_page() {
    let (run, trials) = fake::wide().run();
    let page = html::render(&Summary::new(&run, &trials), &run, &trials);
    let (_, table) = page.split_once("<table").expect("a table");
    let table = table.split("</table>").next().unwrap();
    assert!(table.starts_with(" class=\"overview"), "{table}");
    assert_eq!(table.matches("scope=\"colgroup\"").count(), 5);
    assert_eq!(table.matches("<tr>").count(), 2 + 18);
}

#[test]
fn what_may_be_anything_has_no_figure() {
    let fake = Fake {
        noise: 0.99,
        blocks: 7,
        ..Fake::new(&[Network::same("host"), Network::same("vxlan")])
    };
    let text = render(&fake, Style::default());
    let row = text.lines().find(|line| line.starts_with("vxlan "));
    assert_eq!(row.unwrap().split_whitespace().nth(1), Some("?"), "{text}");
    // What is only undecided has one.
    let text = render(&Fake { noise: 0.1, ..fake }, Style::default());
    let row = text.lines().find(|line| line.starts_with("vxlan "));
    assert!(row.unwrap().contains(" % ±"), "{text}");
}

#[test]
fn colour_changes_nothing_but_colour() {
    let fake = Fake::new(&fake::networks());
    let plain = render(&fake, Style::default());
    let coloured = render(
        &fake,
        Style {
            colour: true,
            ..Style::default()
        },
    );
    assert!(!plain.contains('\u{1b}'));
    assert!(coloured.contains("\u{1b}[31m"), "nothing is red");
    assert_eq!(without_escapes(&coloured), plain);
}

#[test]
fn what_an_alias_stands_for_is_said_without_a_result_too() {
    let (mut run, _) = Fake::new(&fake::networks()).run();
    run.warnings.push(Warning::StandsFor {
        alias: "calico".to_owned(),
        network: "routed".to_owned(),
    });
    let text = terminal::render(&Summary::new(&run, &[]), Style::default());
    assert!(text.contains("calico is measured as `routed`"), "{text}");
}

#[test]
fn a_narrow_terminal_loses_detail_before_figures() {
    let fake = Fake::new(&fake::networks());
    for width in [40, 50, 60, 72] {
        let text = render(
            &fake,
            Style {
                width,
                ..Style::default()
            },
        );
        let tables = text.split("Change against").next().unwrap();
        assert!(tables.contains("p50"), "{text}");
        for line in tables.lines() {
            assert!(line.chars().count() <= width, "wider than {width}: {line}");
        }
    }
}

fn without_escapes(text: &str) -> String {
    let mut out = String::new();
    for (index, part) in text.split('\u{1b}').enumerate() {
        let visible = match index {
            0 => part,
            _ => part.split_once('m').unwrap().1,
        };
        out += visible;
    }
    out
}

#[test]
fn an_experiment_that_asks_for_it_shows_every_latency() {
    let (mut run, trials) = Fake::new(&fake::networks()).run();
    let without = terminal::render(&Summary::new(&run, &trials), Style::default());
    assert!(!without.contains("deviation"), "{without}");
    run.plan.distribution = true;
    let summary = Summary::new(&run, &trials);
    let text = terminal::render(&summary, Style::default());
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "too wide: {line}");
    }
    let head = text.lines().find(|line| line.contains("deviation  times"));
    assert!(
        head.is_some_and(|line| line.contains("times host")),
        "{text}"
    );
    // The latencies of rr, and nothing of the bulk.
    let shown: Vec<_> = summary.distributions.iter().flatten().collect();
    assert_eq!(shown.len(), 1);
    for row in &shown[0].rows {
        assert_eq!(row.samples, 17_500);
        assert_eq!(row.counts.iter().sum::<u64>(), 17_500);
    }
    assert_eq!(shown[0].rows[0].of_baseline, Some(1.0));
    assert!(shown[0].rows[1].of_baseline > Some(1.0), "{shown:?}");
}

use plumbline_record::Warning;
use plumbline_report::terminal::Style;
use plumbline_report::{Summary, html, terminal, warning};

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

/// Where there is room, from the left, and as long in one column as in another: the largest change
/// fills the bar.
#[test]
fn bars_are_to_scale_where_there_is_room_for_them() {
    let networks = Fake::new(&fake::networks());
    for (width, columns) in [(74, 0), (80, 1), (100, 4), (200, 4)] {
        let style = Style {
            width,
            ..Style::default()
        };
        let text = render(&networks, style);
        let row = text.lines().find(|line| line.starts_with("vxlan"));
        let row = row.expect("a row of the table");
        let bars: Vec<usize> = row
            .split(|letter| letter != '█')
            .map(|bar| bar.chars().count())
            .filter(|length| *length > 0)
            .collect();
        assert_eq!(bars.len(), columns, "{width}: {row}");
        assert!(bars.windows(2).all(|two| two[0] == two[1]), "{row}");
        let told = text.contains("Bars are");
        assert_eq!(told, columns > 0, "{width}: {text}");
    }
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

/// The table that a page begins with, and its rows of networks.
fn overview(page: &str) -> (&str, Vec<&str>) {
    let (_, table) = page.split_once("<table").expect("a table");
    let table = table.split("</table>").next().unwrap();
    let rows = table
        .lines()
        .filter(|line| line.starts_with("<tr><th scope=\"row\">"));
    (table, rows.collect())
}

/// What a reader sees of markup.
fn without_tags(markup: &str) -> String {
    let text = |part: &str| part.split_once('>').map_or("", |(_, it)| it).to_owned();
    let all: String = markup.split('<').map(text).collect();
    all.replace("&#60;", "<").replace("&#62;", ">")
}

/// A row of the page is a line of text, and a screen has room for some thirty. In small letters
/// a window of 1,440 pixels has room for some 240 characters, gaps between columns included.
#[test]
fn eighteen_paths_by_five_workloads_are_one_table_of_the_page() {
    let (run, mut trials) = fake::wide().run();
    for trial in &mut trials {
        trial.observation.as_mut().unwrap().common.ksoftirqd_ns = Some(0);
    }
    let page = html::render(&Summary::new(&run, &trials), &run, &trials);
    let (table, rows) = overview(&page);
    assert!(table.starts_with(" class=\"overview dense\""), "{table}");
    assert_eq!(table.matches("scope=\"colgroup\" colspan=\"3\"").count(), 5);
    assert_eq!(table.matches(">procs/req</th>").count(), 3);
    assert_eq!(table.matches("<tr>").count(), 2 + 18);
    assert_eq!(rows.len(), 18);
    for row in rows {
        assert_eq!(row.matches("<td").count(), 15, "{row}");
        let text = without_tags(row);
        assert!(text.chars().count() <= 240, "too wide: {text}");
    }
}

#[test]
fn the_first_screen_has_colour_for_verdicts_and_bars_to_scale() {
    let (run, trials) = Fake::new(&fake::networks()).run();
    let page = html::render(&Summary::new(&run, &trials), &run, &trials);
    let (_, rows) = overview(&page);
    let classes = |label: &str| {
        let begin = format!("<tr><th scope=\"row\">{label}</th>");
        let row = rows.iter().find(|row| row.starts_with(&begin)).unwrap();
        let cells = row.split("<td class=\"").skip(1);
        let class = cells.map(|cell| cell.split('"').next().unwrap());
        class.collect::<Vec<_>>()
    };
    assert_eq!(classes("host"), ["figure"; 4]);
    let of_macvlan = ["undecided", "same", "undecided", "undecided"];
    assert_eq!(classes("macvlan"), of_macvlan);
    assert_eq!(classes("vxlan"), ["worse"; 4]);
    for column in 1..=4 {
        let cells = rows.iter().filter_map(|row| row.split("<td").nth(column));
        let full = cells.filter(|cell| cell.contains("--share:1\""));
        assert_eq!(full.count(), 1, "column {column}: {rows:?}");
    }
    // Only where nothing else answers do the sentences stand open.
    assert!(page.contains("<details class=\"answers\"><summary>"));
    let nothing = html::render(&Summary::new(&run, &[]), &run, &[]);
    assert!(nothing.contains("<details class=\"answers\" open><summary>"));
}

/// One of each kind, with its name. A kind that is not among them does not compile.
macro_rules! named {
    ($($kind:ident $fields:tt,)*) => {{
        let name = |of: &Warning| match of {
            $(Warning::$kind { .. } => stringify!($kind),)*
        };
        [$(Warning::$kind $fields),*].map(|it| (name(&it), it))
    }};
}

/// Warnings that do not begin with what to do, each with the reason.
const OTHERWISE: [(&str, &str); 4] = [
    (
        "NotEnforced",
        "comes before all figures, with what was found",
    ),
    ("Unsupported", "is a sentence, and says what is needed"),
    (
        "CarriesNothing",
        "is a sentence, and only the reason is known",
    ),
    ("StandsFor", "is said below the table, and nothing is wrong"),
];

#[test]
fn a_warning_begins_with_what_to_do() {
    let some = || "vxlan".to_owned();
    let with_remedy = || "a node is busy; name others".to_owned();
    let warnings = named! {
        OneKernel {},
        ShorterWindows { share: 0.5 },
        OtherServer { wanted: some(), answered: some() },
        Nodes { detail: with_remedy() },
        Unguarded { why: some() },
        TrackingUnseen {},
        SharedCpus { cpus: 2 },
        UserModeKernel {},
        ClosedLoop { outstanding: 16 },
        TooFewBlocks { blocks: 3, needed: 6 },
        FewRepetitions { repetitions: 3, needed: 10 },
        NoTurns { why: some() },
        Steal { share: 0.02 },
        NotEnforced {
            label: some(),
            policies: 2,
            enforcer: some(),
            detail: some(),
            blocks: 1,
            planned: 6,
        },
        Unsupported { network: some(), needs: some() },
        CarriesNothing { network: some(), reason: some() },
        StandsFor { alias: some(), network: some() },
        RetriesExhausted { treatment: some() },
        DamagedLines { lines: 2 },
        CutOff { finished: 3, planned: 6 },
        MixedBuilds { builds: 2 },
        OtherLoad { share: 0.1 },
        NearSaturation { share: 0.95 },
        TailLag { lag_ns: 90_000, latency_ns: 100_000 },
        ArrivalsDistorted { distance: 0.1, waited_share: 0.0 },
        UnevenGaps { error_ns: 9_000, waited_share: 0.5 },
        LevelChanged { at: 0.5, before_ns: 40_000, after_ns: 90_000 },
        MaximumOfTheGenerator { workload: some() },
        GeneratorWasTheLimit { sent_share: 0.8, lag_ns: 400_000, busy_share: 0.4 },
        GeneratorBusy { share: 0.9 },
        ClientDiffers { client: 1, p99_ns: 90_000, others_ns: 40_000 },
    };
    let guarded = warning::text(&Warning::Unguarded { why: with_remedy() });
    assert!(
        guarded.ends_with("run: a node is busy; name others"),
        "{guarded}"
    );
    let (mut run, trials) = Fake::new(&[Network::same("host"), Network::same("vxlan")]).run();
    let style = Style {
        width: 1_000,
        ..Style::default()
    };
    for (name, warning) in warnings {
        let said = warning::text(&warning);
        let remedy = said.rsplit_once("; ").map(|(_, remedy)| remedy);
        run.warnings = vec![warning];
        let text = terminal::render(&Summary::new(&run, &trials), style);
        let begins = |remedy: &str| text.contains(&format!("\nwarning: {remedy}: "));
        let exception = OTHERWISE.iter().find(|(kind, _)| *kind == name);
        let is_first = remedy.is_some_and(begins);
        assert_eq!(is_first, exception.is_none(), "{exception:?}: {text}");
    }
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
fn brackets_are_explained_where_there_are_some() {
    for (noise, brackets, beside_zero) in [
        (0.02, true, true),
        (0.04, false, false),
        (0.08, true, false),
    ] {
        let fake = Fake {
            noise,
            blocks: 7,
            ..Fake::new(&fake::networks())
        };
        let text = render(&fake, Style::default());
        let end = text.find("Change against").expect("a legend");
        let (table, rest) = text.split_at(end);
        let legend = rest.split_whitespace().collect::<Vec<_>>().join(" ");
        for (sign, is_shown, meaning) in [
            ("[", brackets, "In brackets the ends of an uneven interval."),
            (">0, ", beside_zero, ">0, <0: just above, just below 0."),
        ] {
            assert_eq!(table.contains(sign), is_shown, "{text}");
            assert_eq!(legend.contains(meaning), is_shown, "{text}");
        }
    }
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

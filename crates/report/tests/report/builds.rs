//! A run that two builds of Plumbline took part in says so wherever it is shown.

use plumbline_record::Build;
use plumbline_report::{Summary, csv, html, json, markdown, terminal};

use crate::fake::{Fake, Network};

#[test]
fn every_table_says_that_builds_were_mixed() {
    let (run, mut trials) = Fake::new(&[Network::same("host"), Network::same("vxlan")]).run();
    assert_eq!(Summary::new(&run, &trials).builds, 1);
    trials[3].build = Some(Build {
        version: "0.2.0".to_owned(),
        sha256: "ab".repeat(32),
    });
    let summary = Summary::new(&run, &trials);
    assert_eq!(summary.builds, 2);
    let tables = summary.sections.len();
    let says = "by 2 builds of Plumbline";
    for (format, text) in [
        (
            "terminal",
            terminal::render(
                &summary,
                terminal::Style {
                    colour: false,
                    width: 400,
                },
            ),
        ),
        ("markdown", markdown::render(&summary)),
        ("html", html::render(&summary, &run, &trials)),
    ] {
        assert!(text.matches(says).count() >= tables, "{format}: {text}");
    }
    let object: serde_json::Value = serde_json::from_str(&json::render(&summary)).unwrap();
    assert_eq!(object["builds"], 2);
    let table = csv::render(&summary);
    let mut rows = table.split_terminator("\r\n");
    assert!(rows.next().unwrap().ends_with(",builds"));
    assert!(rows.all(|row| row.ends_with(",2")));
}

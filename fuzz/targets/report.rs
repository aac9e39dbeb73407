//! What is made of a run that somebody else made or cut off: each format of its report.
#![no_main]

mod laid;

use libfuzzer_sys::fuzz_target;
use plumbline_report::terminal::Style;
use plumbline_report::{Summary, csv, html, json, markdown, terminal};

fuzz_target!(|input: &[u8]| {
    let Some((run, trials)) = laid::read(input) else {
        return;
    };
    let summary = Summary::new(&run, &trials);
    for shown in [
        terminal::render(&summary, Style::default()),
        html::render(&summary, &run, &trials),
        markdown::render(&summary),
        csv::render(&summary),
        json::render(&summary),
    ] {
        assert!(!shown.is_empty());
    }
});

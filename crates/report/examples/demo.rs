//! Writes a report of synthetic figures, to look at:
//! `cargo run -p plumbline-report --example demo -- demo.html`.

#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../tests/report/fake.rs"]
mod fake;

use plumbline_report::{Summary, html, terminal};

fn main() -> std::io::Result<()> {
    let path = std::env::args().nth(1).unwrap_or("demo.html".to_owned());
    let mut fake = fake::Fake::new(&fake::networks());
    fake.samples = 30_000;
    let (run, trials) = fake.run();
    let summary = Summary::new(&run, &trials);
    std::fs::write(path, html::render(&summary, &run, &trials))?;
    print!("{}", terminal::render(&summary, terminal::Style::default()));
    Ok(())
}

//! docs/experiment-file.md says what the program does.

use plumbline_experiment::{Experiment, Flag, Scene, Tuning, metric};

const PAGE: &str = include_str!("../../../docs/experiment-file.md");

/// The text of the first code block of a language.
fn block(language: &str) -> &'static str {
    let fence = format!("```{language}\n");
    let start = PAGE.find(&fence).expect("the page has such a block") + fence.len();
    let length = PAGE[start..].find("```").expect("the block ends");
    &PAGE[start..start + length]
}

#[test]
fn the_annotated_example_is_an_experiment() {
    let experiment =
        Experiment::parse(block("toml"), "page.toml").unwrap_or_else(|e| panic!("{e}"));
    let plan = experiment
        .resolve(1, &|asked| Ok(vec![Scene::of(asked.network.word())]))
        .unwrap_or_else(|e| panic!("{e}"));
    let labels: Vec<String> = plan
        .treatments
        .iter()
        .map(|t| format!("{} / {}", t.label, t.task.name()))
        .collect();
    assert_eq!(
        labels,
        [
            "host / page rate=1000",
            "host-gw / page rate=1000",
            "vxlan / page rate=1000",
            "host / page rate=4000",
            "host-gw / page rate=4000",
            "vxlan / page rate=4000",
        ]
    );
    assert!(plan.blocks.len() >= 6);
}

#[test]
fn the_error_on_the_page_is_the_error_of_the_program() {
    let text = format!(
        "name = \"tour\"{}[[workload]]\nkind = \"rr\"\nrates = 1000\n",
        "\n".repeat(9)
    );
    let error = Experiment::parse(&text, "tour.toml").unwrap_err();
    assert_eq!(error.to_string(), block("text").trim_end());
}

#[test]
fn every_flag_and_metric_is_on_the_page() {
    for flag in Flag::all() {
        let typed = format!("--{}", flag.name);
        assert!(PAGE.contains(&typed), "{typed}");
    }
    for key in Tuning::KEYS {
        assert!(PAGE.contains(&format!("`{key}`")), "{key}");
    }
    for metric in metric::names() {
        assert!(PAGE.contains(&format!("`{metric}`")), "{metric}");
    }
}

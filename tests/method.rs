//! docs/method.md explains every rule that the source cites.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The rules that `text` cites: `L-3`, `D12`, and `S-5` for `S-5c`. A default
/// is cited as a word of its own, so that `0xD1` and `D1_NAME` are none.
fn cited(text: &str) -> BTreeSet<String> {
    let is_of_a_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    text.split(|c: char| !is_of_a_word(c))
        .filter_map(|word| {
            let (letter, rest) = word.split_at_checked(1)?;
            let (dash, rest) = match rest.strip_prefix('-') {
                Some(rest) => ("-", rest),
                None => ("", rest),
            };
            let numbered = if dash.is_empty() { "D" } else { "LQCNPSR" };
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            let suffix = &rest[digits.len()..];
            let is_part = suffix.is_empty() || matches!(suffix, "a" | "b" | "c" | "d" | "e" | "f");
            let is_rule = numbered.contains(letter) && !digits.is_empty() && is_part;
            is_rule.then(|| format!("{letter}{dash}{digits}"))
        })
        .collect()
}

/// All Rust files below `directory`, one after the other.
fn source(directory: &Path, text: &mut String) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            source(&path, text);
        } else if path.extension().is_some_and(|e| e == "rs") {
            text.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

/// The rules that have an entry of their own in the last section.
fn explained(method: &str) -> BTreeSet<String> {
    let (_, rules) = method
        .split_once("## The rules by number")
        .expect("the section");
    let entries = rules.lines().filter_map(|l| l.strip_prefix("- **"));
    entries
        .filter_map(|l| Some(l.split_once("** ")?.0.to_owned()))
        .collect()
}

#[test]
fn every_rule_that_the_source_cites_is_explained() {
    let mut text = String::new();
    for directory in ["crates", "src"] {
        source(directory.as_ref(), &mut text);
    }
    let cited = cited(&text);
    assert!(cited.len() > 50, "{cited:?}");
    let explained = explained(&fs::read_to_string("docs/method.md").unwrap());
    let missing: Vec<_> = cited.difference(&explained).collect();
    assert!(missing.is_empty(), "docs/method.md lacks {missing:?}");
}

#[test]
fn a_rule_without_an_entry_is_found() {
    let cited = cited("// (S-5c), L-3 and D12; not A-1, 0xD1, P50, D1_NAME or HMAC-5");
    let rules: Vec<_> = cited.iter().map(String::as_str).collect();
    assert_eq!(rules, ["D12", "L-3", "S-5"]);
    let explained = explained("S-5 here\n## The rules by number\n- **L-3** It.\n- **D12** It.\n");
    assert_eq!(cited.difference(&explained).collect::<Vec<_>>(), ["S-5"]);
}

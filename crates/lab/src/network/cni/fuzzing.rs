//! What fuzzing targets reach of CNI.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;

use plumbline_experiment::Family;
use plumbline_sys::process::ProcessError;
use serde_json::{Value, json};

use super::error::{Call, CniError};
use super::list::List;
use super::plugin::{address_in, built_as, refusal, result, supported};
use crate::Addressing;

/// Reads a configuration list, and derives what each of its plugins is given: for how many
/// plugins.
///
/// # Panics
///
/// When a plugin is given a directory outside of that of the run.
pub fn list(text: &str) -> usize {
    let mut count = 0;
    for family in Family::BOTH {
        let addressing = Addressing::new(*family);
        let Ok(list) = List::parse(Path::new("x.conflist"), text, addressing, 2, 1500) else {
            continue;
        };
        let version = list.candidates()[0];
        for plugin in &list.plugins {
            let request = list.request(plugin, version, None, Path::new("/run"));
            assert_eq!(request["type"], plugin.kind.as_str());
            assert_eq!(request["cniVersion"], version);
            assert_inside(&request);
            assert_inside(&request["ipam"]);
            count += 1;
        }
    }
    count
}

/// Whatever the case of the key: plugins do not tell it.
fn assert_inside(section: &Value) {
    for (key, value) in section.as_object().into_iter().flatten() {
        if key.eq_ignore_ascii_case("dataDir") {
            let path = value.as_str().map(Path::new);
            let is_inside = path.is_some_and(|it| {
                it.starts_with("/run") && it.components().all(|part| part.as_os_str() != "..")
            });
            assert!(is_inside, "{section}");
        }
    }
}

/// Reads what a plugin printed as each of the answers that there are; gives those that it is.
///
/// # Panics
///
/// When an address is of another family than was asked for, an error is too long to be
/// shown, or what is read is not in the answer.
pub fn answer(bytes: &[u8]) -> Vec<&'static str> {
    let mut understood = Vec::new();
    let call = Call {
        plugin: "bridge".to_owned(),
        command: "ADD",
        pod: None,
    };
    match result(&call, bytes, &json!({ "cniVersion": "1.0.0" })) {
        Ok(result) => {
            understood.push("result");
            let found = Family::BOTH.iter().filter(|family| {
                let address = address_in(&result, **family);
                assert!(address.is_none_or(|it| family.holds(it)));
                address.is_some()
            });
            if found.count() == Family::BOTH.len() {
                understood.push("both families");
            }
        }
        Err(error) => assert_short(&error),
    }
    let ended = ProcessError::Failed {
        pid: 1,
        status: ExitStatus::from_raw(1 << 8),
        stderr: String::new(),
    };
    match refusal(&call, bytes, ended) {
        // A message is in the answer, where a character may have been escaped.
        CniError::Refused { message, .. } => {
            assert!(message.len() <= 2 * bytes.len(), "{message}");
            understood.push("refusal");
        }
        error => assert_short(&error),
    }
    match supported(&call, bytes) {
        Ok(versions) => {
            assert!(versions.len() <= bytes.len());
            understood.push("versions");
        }
        Err(error) => assert_short(&error),
    }
    let said = String::from_utf8_lossy(bytes);
    if let Some(version) = built_as(&said) {
        assert!(!version.contains('\n') && version != "version unknown");
        understood.push("build");
    }
    understood
}

/// An error that quotes an answer is short enough to be shown.
fn assert_short(error: &CniError) {
    assert!(error.to_string().len() < 2_000, "{error}");
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::seeds::{corpus, seed};

    #[test]
    fn every_reader_of_answers_understands_a_seed() {
        let seeds: [(&str, &[&str]); 6] = [
            ("ok", &["result", "both families"]),
            ("old", &[]),
            ("error", &["result", "refusal"]),
            ("error-without-details", &["refusal"]),
            ("versions", &["result", "versions"]),
            ("about", &["build"]),
        ];
        for (name, expected) in seeds {
            let seed = seed(&format!("cni_answer/{name}"));
            assert_eq!(answer(&seed), expected, "{name}");
        }
    }

    #[test]
    fn every_seed_of_lists_is_a_list() {
        let seeds = fs::read_dir(corpus("cni_list")).unwrap();
        let paths: Vec<_> = seeds.map(|seed| seed.unwrap().path()).collect();
        assert!(paths.len() > 4, "{paths:?}");
        for path in paths {
            let text = fs::read_to_string(&path).unwrap();
            assert!(list(&text) >= Family::BOTH.len(), "{}", path.display());
        }
    }
}

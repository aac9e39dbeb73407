//! What fuzzing targets reach of CNI.

use std::path::Path;

use plumbline_experiment::Family;
use serde_json::{Value, json};

use super::error::Call;
use super::list::List;
use super::plugin::{address_in, result};
use crate::Addressing;

/// Reads a configuration list, and derives what each of its plugins is given.
///
/// # Panics
///
/// When a plugin is given a directory outside of that of the run.
pub fn list(text: &str) {
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
        }
    }
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

/// Reads the answer of a plugin to ADD.
///
/// # Panics
///
/// When an address is of another family than was asked for, or an error is too long to be
/// shown.
pub fn answer(bytes: &[u8]) {
    let call = Call {
        plugin: "bridge".to_owned(),
        command: "ADD",
        pod: None,
    };
    match result(&call, bytes, &json!({ "cniVersion": "1.0.0" })) {
        Ok(result) => {
            for family in Family::BOTH {
                assert!(address_in(&result, *family).is_none_or(|it| family.holds(it)));
            }
        }
        Err(error) => assert!(error.to_string().len() < 2_000, "{error}"),
    }
}

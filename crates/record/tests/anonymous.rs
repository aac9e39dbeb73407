//! No name is in an anonymous record: a mark is planted in every string that the schemas
//! know, and what stays is listed here by name.

mod full;

use std::collections::BTreeSet;

use full::{MARK, Maker};
use plumbline_record::{AnonymityError, Pseudonyms, Run, SearchRecord, Trial};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What readers need to judge the figures, and what tells only of the program.
const MAY_STAY: &[&str] = &[
    "Build.sha256",
    "Build.version",
    "CniPlugin.sha256",
    "Conditions.thresholds.{key}",
    "DeviceFingerprint.driver",
    "DeviceFingerprint.offloads[]",
    "DeviceFingerprint.qdisc",
    "Fingerprint.architecture",
    "Fingerprint.clock_source",
    "Fingerprint.cpu_model",
    "Fingerprint.governor",
    "Fingerprint.hypervisor",
    "Fingerprint.kernel",
    "Fingerprint.microcode",
    "Fingerprint.sysctls.*",
    "Fingerprint.sysctls.{key}",
    "Fingerprint.tuned[]",
    "LoadResult.driver",
    "Plan.limits.{key}",
    "Provenance.started",
    "Provenance.version",
    "Trial.started",
];

/// Adds the fields of a type whose marks stay; gives how many were planted.
fn hide<T: Serialize + DeserializeOwned + schemars::JsonSchema>(
    name: &str,
    hide: impl Fn(&T) -> Result<T, AnonymityError>,
    stays: &mut BTreeSet<String>,
) -> usize {
    let maker = Maker::of::<T>();
    for record in maker.records(name) {
        let text = record.to_string();
        let read: T = serde_json::from_value(record).unwrap_or_else(|e| panic!("{e}: {text}"));
        let before = serde_json::to_string(&read).unwrap();
        assert!(before.contains(MARK), "{before}");
        let after = serde_json::to_string(&hide(&read).unwrap()).unwrap();
        stays.extend(maker.marked(&after));
    }
    maker.fields()
}

#[test]
fn of_every_string_of_a_record_only_these_stay() {
    let mut stays = BTreeSet::new();
    let mut planted = hide::<Run>("Run", |it| Pseudonyms::default().run(it), &mut stays);
    planted += hide::<Trial>("Trial", |it| Pseudonyms::default().trial(it), &mut stays);
    let search = |it: &SearchRecord| Pseudonyms::default().search(it);
    planted += hide::<SearchRecord>("SearchRecord", search, &mut stays);
    assert!(planted > 100, "only {planted} strings");
    let listed: BTreeSet<String> = MAY_STAY.iter().map(|it| (*it).to_owned()).collect();
    assert_eq!(stays, listed);
}

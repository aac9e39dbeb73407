//! What earlier builds wrote, as this one reads it. Each function takes a format
//! one step further, on JSON, so that the types know the newest only.

use serde_json::{Value, json};

use crate::Common;

/// Brings the text of `run.json` in `format` to the newest one.
pub(super) fn run(format: u64, run: &mut Value) {
    if format < 2 {
        scenes(run);
    }
}

/// Brings a line of `trials.jsonl` in `format` to the newest one, which may need
/// several lines.
pub(super) fn trial(format: u64, line: Value) -> Vec<Value> {
    if format < 3 {
        return exercises(line);
    }
    vec![line]
}

/// Until format 2 the only exercise was load, observed in one flat object, and a
/// set-up stood on the first trial after it.
fn exercises(mut line: Value) -> Vec<Value> {
    let set_up = line.as_object_mut().and_then(|it| it.remove("set_up"));
    let set_up = set_up.filter(|it| !it.is_null());
    if let Some(Value::Object(seen)) = line.get_mut("observation") {
        let mut what = json!({ "exercise": "load" });
        for field in ["load", "serve", "server_cpu"] {
            if let Some(value) = seen.remove(field) {
                what[field] = value;
            }
        }
        let common = std::mem::take(seen);
        seen.insert("common".to_owned(), common.into());
        seen.insert("what".to_owned(), what);
    }
    let set_up = set_up.map(|set_up| line_of_set_up(&line, set_up));
    set_up.into_iter().chain([line]).collect()
}

/// The line of a set-up that stood on the trial `first`.
fn line_of_set_up(first: &Value, mut set_up: Value) -> Value {
    let ns = |name: &str| set_up[name].as_u64().unwrap_or(0);
    let took_ns = ns("took_ns").saturating_add(ns("paths_ns"));
    let status = if set_up["came_up"] == true {
        json!({ "status": "valid" })
    } else {
        let said = first["status"]["error"].as_str();
        json!({ "status": "failed", "error": said.unwrap_or("the network did not come up") })
    };
    if let Some(set_up) = set_up.as_object_mut() {
        set_up.insert("exercise".to_owned(), "set-up".into());
    }
    let mut line = json!({
        "took_ns": took_ns,
        "status": status,
        "warnings": [],
        "observation": { "common": Common::default(), "what": set_up },
    });
    for field in [
        "block",
        "position",
        "treatment",
        "attempt",
        "session",
        "started",
    ] {
        if let Some(value) = first.get(field) {
            line[field] = value.clone();
        }
    }
    line
}

/// Format 1 had networks whose names held the path through a cluster, and the
/// number of a copy in its label only.
fn scenes(run: &mut Value) {
    let in_cluster = run["provenance"]["target"] == "kubernetes";
    let treatments = run.pointer_mut("/plan/treatments");
    let treatments = treatments.and_then(Value::as_array_mut);
    for treatment in treatments.into_iter().flatten() {
        let copy = treatment["label"].as_str().and_then(copy);
        if let Some(copy) = copy {
            treatment["copy"] = copy.into();
        }
        if in_cluster {
            split(treatment);
        }
    }
    let maxima = run.get_mut("maxima").and_then(Value::as_array_mut);
    for maximum in maxima.into_iter().flatten().filter(|_| in_cluster) {
        split(maximum);
    }
}

/// The 2 of `host-gw#2 same-node`.
fn copy(label: &str) -> Option<u32> {
    let (_, behind) = label.rsplit_once('#')?;
    behind.split(' ').next()?.parse().ok()
}

/// `CLUSTER/cluster-ip:3` into its parts.
fn split(scene: &mut Value) {
    let Some(name) = scene["network"].as_str().map(str::to_owned) else {
        return;
    };
    let (cluster, path) = name.rsplit_once('/').unwrap_or(("", &name));
    let (path, backends) = match path.split_once(':') {
        Some((path, backends)) => (path, backends.parse::<u32>().ok()),
        None => (path, None),
    };
    scene["network"] = cluster.into();
    scene["path"] = path.into();
    if let Some(backends) = backends {
        scene["backends"] = backends.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Trial;

    #[test]
    fn paths_of_clusters_come_out_of_names() {
        let mut old = json!({
            "provenance": { "target": "kubernetes" },
            "plan": { "treatments": [
                { "label": "arn:x/b/cluster-ip:3", "network": "arn:x/b/cluster-ip:3" },
                { "label": "pod#2", "network": "pod" },
            ] },
            "maxima": [{ "network": "a/host" }],
        });
        run(1, &mut old);
        assert_eq!(
            old["plan"]["treatments"],
            json!([
                { "label": "arn:x/b/cluster-ip:3", "network": "arn:x/b", "path": "cluster-ip",
                  "backends": 3 },
                { "label": "pod#2", "network": "", "path": "pod", "copy": 2 },
            ])
        );
        assert_eq!(old["maxima"], json!([{ "network": "a", "path": "host" }]));
    }

    #[test]
    fn names_of_a_lab_stay_whole() {
        let mut old = json!({
            "provenance": { "target": "lab" },
            "plan": { "treatments": [
                { "label": "cni:a/b.conflist#2 same-node", "network": "cni:a/b.conflist" },
            ] },
        });
        run(1, &mut old);
        let treatment = &old["plan"]["treatments"][0];
        assert_eq!(
            (&treatment["network"], &treatment["copy"]),
            (&json!("cni:a/b.conflist"), &json!(2))
        );
        assert_eq!(treatment.get("path"), None);
    }

    /// A trial of format 2 in a cluster that was made for it.
    fn trial_after_set_up(came_up: bool) -> Value {
        json!({
            "block": 1, "position": 2, "treatment": 3, "attempt": 0, "session": 1,
            "pair": { "client": "a", "server": "b" },
            "started": "2026-01-31T23:59:59Z", "took_ns": 9,
            "status": { "status": "failed", "error": "the network x did not come up: no disk" },
            "warnings": [], "observation": null,
            "set_up": {
                "network": "x", "took_ns": 5, "paths_ns": 2, "came_up": came_up,
                "log": "provision/1-x.log", "fingerprint": null,
            },
        })
    }

    #[test]
    fn a_set_up_becomes_a_line_before_the_trial_that_it_stood_on() {
        let lines = trial(2, trial_after_set_up(true));
        let read: Vec<Trial> = lines
            .into_iter()
            .map(|line| serde_json::from_value(line).unwrap())
            .collect();
        let [set_up, first] = &read[..] else {
            panic!("{read:?}");
        };
        assert_eq!((set_up.block, set_up.position, set_up.treatment), (1, 2, 3));
        assert_eq!((set_up.took_ns, set_up.session), (7, 1));
        assert_eq!(set_up.status, crate::TrialStatus::Valid);
        let seen = set_up.set_up().unwrap();
        assert_eq!((seen.network.as_str(), seen.paths_ns), ("x", Some(2)));
        assert_eq!((first.set_up(), first.took_ns), (None, 9));
        assert!(first.pair.is_some());
    }

    #[test]
    fn a_set_up_that_failed_says_what_the_trial_said() {
        let lines = trial(2, trial_after_set_up(false));
        assert_eq!(lines[0]["status"], lines[1]["status"]);
    }

    #[test]
    fn what_is_no_trial_is_left_for_the_types_to_refuse() {
        for line in [json!(null), json!([1]), json!({ "observation": 7 })] {
            assert_eq!(trial(1, line.clone()), [line]);
        }
        let mut run_of_another_shape = json!([1]);
        run(1, &mut run_of_another_shape);
        assert_eq!(run_of_another_shape, json!([1]));
    }
}

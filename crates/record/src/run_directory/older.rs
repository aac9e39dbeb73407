//! What earlier builds wrote, as this one reads it. Each function takes a format
//! one step further, on JSON, so that the types know the newest only.

use serde_json::Value;

/// Brings the text of `run.json` in `format` to the newest one.
pub(super) fn run(format: u64, run: &mut Value) {
    if format < 2 {
        scenes(run);
    }
}

/// Format 1 had networks whose names held the path through a cluster, and the
/// number of a copy in its label only.
fn scenes(run: &mut Value) {
    let in_cluster = run["provenance"]["target"] == "kubernetes";
    let treatments = run["plan"]["treatments"].as_array_mut();
    for treatment in treatments.into_iter().flatten() {
        let copy = treatment["label"].as_str().and_then(copy);
        if let Some(copy) = copy {
            treatment["copy"] = copy.into();
        }
        if in_cluster {
            split(treatment);
        }
    }
    let maxima = run["maxima"].as_array_mut();
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
    use serde_json::json;

    use super::*;

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
}

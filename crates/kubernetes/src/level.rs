//! The names of networks where a run has several clusters: `CLUSTER/PATH`.

use plumbline_experiment::Treatment;
use plumbline_harness::TargetError;

use crate::route::{ROUTES, Route};

/// Cluster and path of a network's name.
pub(crate) fn halves(network: &str) -> Option<(&str, &str)> {
    // A name of a cluster may hold slashes, as those of clouds do; one of a path
    // does not.
    network.rsplit_once('/')
}

/// The cluster that a treatment runs in.
///
/// # Errors
///
/// A name without one, as of a run of another target.
pub(crate) fn cluster_of(treatment: &Treatment) -> Result<&str, TargetError> {
    match halves(&treatment.network) {
        Some((cluster, _)) => Ok(cluster),
        None => Err(TargetError::Unsupported {
            what: format!("the network `{}`", treatment.network),
            needs: "a run of one cluster: where there are several, networks are CLUSTER/PATH"
                .to_owned(),
        }),
    }
}

/// The treatment as the cluster itself knows it.
pub(crate) fn within(treatment: &Treatment) -> Treatment {
    let path = halves(&treatment.network).map_or(&*treatment.network, |it| it.1);
    Treatment {
        network: path.to_owned(),
        ..treatment.clone()
    }
}

/// The networks that a word stands for: a cluster and a path, or one of both,
/// which then stands for all of the other. `clusters` and `here` are what there
/// is; `known` says whether a word can be the name of a cluster.
///
/// # Errors
///
/// A sentence, for words that are neither.
pub(crate) fn named(
    word: &str,
    clusters: &[String],
    here: &[Route],
    known: impl Fn(&str) -> Result<(), String>,
) -> Result<Vec<String>, String> {
    let is_all = |word: &str| matches!(word, "all" | "usual");
    let (cluster, path) = match halves(word) {
        Some((cluster, path)) if is_all(path) || Route::parse(path).is_some() => (cluster, path),
        _ if Route::parse(word).is_some() => ("all", word),
        _ => (word, "all"),
    };
    let clusters = if is_all(cluster) {
        clusters.to_vec()
    } else {
        known(cluster)?;
        vec![cluster.to_owned()]
    };
    let paths: Vec<Route> = match Route::parse(path) {
        Some(route) if route.needs_host_network() && !here.contains(&route) => {
            return Err(format!(
                "`{path}` needs --allow-host-network: pods in the nodes' own networks, in a \
                 namespace with the privileged profile"
            ));
        }
        Some(route) => vec![route],
        None => ROUTES.into_iter().filter(|it| here.contains(it)).collect(),
    };
    let each = clusters.iter().flat_map(|cluster| {
        let named = |route: &Route| format!("{cluster}/{}", route.name());
        paths.iter().map(named).collect::<Vec<_>>()
    });
    Ok(each.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(word: &str) -> Result<Vec<String>, String> {
        let clusters = ["a".to_owned(), "arn:x/b".to_owned()];
        let here = [Route::Pod, Route::ClusterIp { backends: 1 }];
        named(word, &clusters, &here, |word| {
            let known = clusters.iter().any(|it| it == word);
            known.then_some(()).ok_or_else(|| format!("no {word}"))
        })
    }

    #[test]
    fn a_word_is_a_cluster_or_a_path_or_both() {
        assert_eq!(names("a/pod").unwrap(), ["a/pod"]);
        assert_eq!(names("pod").unwrap(), ["a/pod", "arn:x/b/pod"]);
        assert_eq!(names("all/pod").unwrap(), ["a/pod", "arn:x/b/pod"]);
        assert_eq!(names("a/cluster-ip:3").unwrap(), ["a/cluster-ip:3"]);
        assert_eq!(
            names("arn:x/b").unwrap(),
            ["arn:x/b/pod", "arn:x/b/cluster-ip"]
        );
        assert_eq!(names("all").unwrap().len(), 4);
        assert_eq!(names("c/pod").unwrap_err(), "no c");
        assert!(names("host").unwrap_err().contains("--allow-host-network"));
    }
}

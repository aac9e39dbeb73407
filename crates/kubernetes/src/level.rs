//! The scenes of a run that has several clusters: a cluster and a path in it.

use plumbline_experiment::{Asked, Scene, Treatment, Wanted};
use plumbline_harness::TargetError;
use plumbline_record::Warning;

use crate::route::{ClusterRoute, available};

/// The cluster that a treatment runs in.
///
/// # Errors
///
/// A scene without one, as of a run of another target.
pub(crate) fn cluster_of(treatment: &Treatment) -> Result<&str, TargetError> {
    match &treatment.scene.network {
        none if none.is_empty() => Err(TargetError::Unsupported {
            what: format!("the network `{}`", treatment.scene.name()),
            needs: "a run of one cluster: where there are several, networks are CLUSTER/PATH"
                .to_owned(),
        }),
        cluster => Ok(cluster),
    }
}

/// Cluster and path as an experiment asks for them. The name of a cluster may
/// hold slashes, as those of clouds do; that of a path does not. A cluster or a
/// path alone stands for all of the other.
fn cluster_and_path<'a>(asked: &Asked<'a>) -> (Wanted<'a>, Wanted<'a>) {
    if let Some(path) = asked.path {
        return (asked.network, path);
    }
    let Some(word) = asked.network.name() else {
        return (Wanted::All, Wanted::All);
    };
    let is_path = |word| {
        Wanted::new(word)
            .name()
            .is_none_or(|it| ClusterRoute::parse(it).is_some())
    };
    match word.rsplit_once('/') {
        Some((cluster, path)) if is_path(path) => (Wanted::new(cluster), Wanted::new(path)),
        _ if ClusterRoute::parse(word).is_some() => (Wanted::All, Wanted::Named(word)),
        _ => (Wanted::Named(word), Wanted::All),
    }
}

/// The scenes that an experiment asks of some clusters; in `said` what `all` leaves out.
/// `known` says whether a word can be the name of a cluster.
///
/// # Errors
///
/// A sentence about a word that is neither cluster nor path, or about a path that is not
/// available.
pub(crate) fn scenes(
    asked: &Asked<'_>,
    clusters: &[String],
    host_network: bool,
    said: &mut Vec<Warning>,
    known: impl Fn(&str) -> Result<(), String>,
) -> Result<Vec<Scene>, String> {
    let (cluster, path) = cluster_and_path(asked);
    let clusters = match cluster.name() {
        None => clusters.to_vec(),
        Some(cluster) => {
            known(cluster)?;
            vec![cluster.to_owned()]
        }
    };
    let paths = match path.name() {
        None => {
            let (here, missing) = available(host_network);
            let mut news = missing;
            news.retain(|one| !said.contains(one));
            said.extend(news);
            here
        }
        Some(path) => vec![ClusterRoute::named(path, host_network)?],
    };
    let through = |cluster: &String| -> Vec<Scene> {
        paths.iter().map(|route| route.through(cluster)).collect()
    };
    Ok(clusters.iter().flat_map(through).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(word: &str) -> Result<Vec<String>, String> {
        let clusters = ["a".to_owned(), "arn:x/b".to_owned()];
        let found = scenes(
            &Asked::network(word),
            &clusters,
            false,
            &mut Vec::new(),
            |word| {
                let known = clusters.iter().any(|it| it == word);
                known.then_some(()).ok_or_else(|| format!("no {word}"))
            },
        )?;
        Ok(found.iter().map(|it| it.name().into_owned()).collect())
    }

    #[test]
    fn a_word_is_a_cluster_or_a_path_or_both() {
        assert_eq!(names("a/pod").unwrap(), ["a/pod"]);
        assert_eq!(names("pod").unwrap(), ["a/pod", "arn:x/b/pod"]);
        assert_eq!(names("all/pod").unwrap(), ["a/pod", "arn:x/b/pod"]);
        assert_eq!(names("a/cluster-ip:3").unwrap(), ["a/cluster-ip:3"]);
        assert_eq!(
            names("arn:x/b").unwrap(),
            ["arn:x/b/pod", "arn:x/b/cluster-ip", "arn:x/b/node-port"]
        );
        assert_eq!(names("all").unwrap().len(), 6);
        assert_eq!(names("c/pod").unwrap_err(), "no c");
        assert!(names("host").unwrap_err().contains("--allow-host-network"));
    }
}

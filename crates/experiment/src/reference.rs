//! What is compared with what, where a network has several paths.
//!
//! One word can be the baseline of many levels: a path that each network has
//! (`host`), or a network that has each path (`flannel`).

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::Scene;

/// Which of several references a level is compared with: the one of its own
/// network where every reference is of another network, or the one of its own
/// path where all are of one network.
///
/// Gives the position among `references` for each of `levels`, `None` for a
/// reference itself. `None` as a whole when the references do not say which of
/// them belongs to which level.
pub(crate) fn references(levels: &[Scene], references: &[Scene]) -> Option<Vec<Option<usize>>> {
    if let [_] = references {
        let of_the_one = levels.iter().map(|it| (*it != references[0]).then_some(0));
        return Some(of_the_one.collect());
    }
    if references.iter().any(|one| !has_path(one)) {
        return None;
    }
    let networks = references.iter().map(|it| Cow::from(&*it.network));
    let by: fn(&Scene, &Scene) -> bool = if distinct(networks) {
        |one, other| one.network == other.network
    } else if distinct(references.iter().map(Scene::path_name))
        && references
            .iter()
            .all(|it| it.network == references[0].network)
    {
        |one, other| one.path_name() == other.path_name()
    } else {
        return None;
    };
    levels
        .iter()
        .map(|level| {
            if references.contains(level) {
                return Some(None);
            }
            let found = references.iter().position(|one| by(one, level))?;
            has_path(level).then_some(Some(found))
        })
        .collect()
}

/// The references among the levels of a plan that a word stands for: the level
/// itself, or else a path in every network, or else a network on every path.
pub(crate) fn meant<'a>(word: &str, levels: &'a [Scene]) -> Vec<&'a Scene> {
    let all = |fits: &dyn Fn(&Scene) -> bool| -> Vec<&'a Scene> {
        levels.iter().filter(|one| fits(one)).collect()
    };
    let exact = all(&|one| one.name() == word);
    if !exact.is_empty() {
        return exact;
    }
    let path = all(&|one| has_path(one) && one.path_name() == word);
    if !path.is_empty() {
        return path;
    }
    all(&|one| has_path(one) && one.network == word)
}

/// Whether a level is one of several networks on one of several paths.
fn has_path(level: &Scene) -> bool {
    !level.network.is_empty() && !level.path.is_empty()
}

fn distinct<'a>(names: impl Iterator<Item = Cow<'a, str>> + Clone) -> bool {
    names.clone().count() == names.collect::<BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a/host b` as scenes.
    fn scenes(text: &str) -> Vec<Scene> {
        let scene = |word: &str| match word.split_once('/') {
            Some((network, path)) => Scene::of(network).by(path),
            None => Scene::of(word),
        };
        text.split_whitespace().map(scene).collect()
    }

    #[test]
    fn each_network_is_compared_with_its_own_path() {
        let levels = scenes("a/host a/pod b/host b/pod");
        let found = references(&levels, &scenes("a/host b/host"));
        assert_eq!(found, Some(vec![None, Some(0), None, Some(1)]));
    }

    #[test]
    fn each_path_is_compared_with_that_of_one_network() {
        let levels = scenes("a/host a/pod b/host b/pod");
        let found = references(&levels, &scenes("a/host a/pod"));
        assert_eq!(found, Some(vec![None, None, Some(0), Some(1)]));
    }

    #[test]
    fn what_says_nothing_of_a_level_is_no_baseline() {
        let levels = scenes("a/pod b/pod");
        assert_eq!(references(&levels, &scenes("vxlan host-gw")), None);
        assert_eq!(references(&levels, &scenes("a/pod a/host b/pod")), None);
        assert_eq!(
            references(&scenes("a/pod c/pod"), &scenes("a/host b/host")),
            None
        );
    }

    #[test]
    fn a_word_is_a_level_or_a_path_or_a_network() {
        let levels = scenes("a/host a/pod b/host");
        let meant = |word| -> Vec<String> {
            let found = meant(word, &levels).into_iter();
            found.map(|one| one.name().into_owned()).collect()
        };
        assert_eq!(meant("a/pod"), ["a/pod"]);
        assert_eq!(meant("host"), ["a/host", "b/host"]);
        assert_eq!(meant("a"), ["a/host", "a/pod"]);
        assert!(meant("c").is_empty());
    }
}

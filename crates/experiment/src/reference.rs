//! What is compared with what, where a network has several paths.
//!
//! A target that holds several networks, each with several paths, names its
//! levels `NETWORK/PATH`, such as `calico/pod`. One word then can be the
//! baseline of many: a path that each network has (`host`), or a network that
//! has each path (`flannel`).

/// Network and path of a level; `None` for a level without a path of its own.
fn halves(level: &str) -> Option<(&str, &str)> {
    level.rsplit_once('/')
}

/// Which of several references a level is compared with: the one of its own
/// network where every reference is of another network, or the one of its own
/// path where all are of one network.
///
/// Gives the position among `references` for each of `levels`, `None` for a
/// reference itself. `None` as a whole when the references do not say which of
/// them is meant for which level.
pub(crate) fn references(levels: &[String], references: &[String]) -> Option<Vec<Option<usize>>> {
    let split: Vec<(&str, &str)> = references
        .iter()
        .map(|one| halves(one))
        .collect::<Option<_>>()?;
    let by = if distinct(split.iter().map(|it| it.0)) {
        |it: (&str, &str), level: (&str, &str)| it.0 == level.0
    } else if distinct(split.iter().map(|it| it.1)) && split.iter().all(|it| it.0 == split[0].0) {
        |it: (&str, &str), level: (&str, &str)| it.1 == level.1
    } else {
        return None;
    };
    levels
        .iter()
        .map(|level| {
            if references.contains(level) {
                return Some(None);
            }
            let halves = halves(level)?;
            let found = split.iter().position(|one| by(*one, halves))?;
            Some(Some(found))
        })
        .collect()
}

/// The references among the levels of a plan that a word stands for: the level
/// itself, or else a path in every network, or else a network on every path.
pub(crate) fn meant<'a>(word: &str, levels: &[&'a str]) -> Vec<&'a str> {
    let all = |fits: &dyn Fn(&str) -> bool| -> Vec<&'a str> {
        levels.iter().copied().filter(|one| fits(one)).collect()
    };
    let exact = all(&|one| one == word);
    if !exact.is_empty() {
        return exact;
    }
    let path = all(&|one| halves(one).is_some_and(|it| it.1 == word));
    if !path.is_empty() {
        return path;
    }
    all(&|one| halves(one).is_some_and(|it| it.0 == word))
}

fn distinct<'a>(names: impl Iterator<Item = &'a str> + Clone) -> bool {
    let count = names.clone().count();
    let set: std::collections::BTreeSet<&str> = names.collect();
    set.len() == count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn each_network_is_compared_with_its_own_path() {
        let levels = names("a/host a/pod b/host b/pod");
        let found = references(&levels, &names("a/host b/host"));
        assert_eq!(found, Some(vec![None, Some(0), None, Some(1)]));
    }

    #[test]
    fn each_path_is_compared_with_that_of_one_network() {
        let levels = names("a/host a/pod b/host b/pod");
        let found = references(&levels, &names("a/host a/pod"));
        assert_eq!(found, Some(vec![None, None, Some(0), Some(1)]));
    }

    #[test]
    fn what_says_nothing_of_a_level_is_no_baseline() {
        let levels = names("a/pod b/pod");
        assert_eq!(references(&levels, &names("vxlan host-gw")), None);
        assert_eq!(references(&levels, &names("a/pod a/host b/pod")), None);
        assert_eq!(
            references(&names("a/pod c/pod"), &names("a/host b/host")),
            None
        );
    }

    #[test]
    fn a_word_is_a_level_or_a_path_or_a_network() {
        let levels = ["a/host", "a/pod", "b/host"];
        assert_eq!(meant("a/pod", &levels), ["a/pod"]);
        assert_eq!(meant("host", &levels), ["a/host", "b/host"]);
        assert_eq!(meant("a", &levels), ["a/host", "a/pod"]);
        assert!(meant("c", &levels).is_empty());
    }
}

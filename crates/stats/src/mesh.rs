//! Which nodes and which pairs of a mesh are unlike the rest.
//!
//! The logarithm of a pair's value is taken as the sum of what is common, what
//! each of its two nodes adds, and what is the pair's own. All three are medians,
//! as in the first sweep of a median polish (Tukey, *Exploratory Data Analysis*,
//! 1977), so that a slow node is found as a node and not as all of its pairs, and
//! no outlier hides itself by moving the mean.

mod named;

use crate::normal::upper_quantile;
use crate::order::median_of_sorted;

pub use named::{blocks_to_name, named};

/// With fewer nodes, what is a node's and what is a pair's cannot be told apart.
pub const LEAST_NODES: usize = 4;

/// Deviations in units of 1.4826 MAD above which a value is an outlier (Iglewicz
/// and Hoaglin, *How to Detect and Handle Outliers*, 1993: a modified z-score of
/// more than 3.5).
const SCORE: f64 = 3.5;

/// Chance of a single false name in a whole mesh, were the noise normal: the
/// score rises with the number of values that are looked at.
const FALSE_ALARM: f64 = 0.05;

/// A smaller ratio does not matter, however even the rest is.
const LEAST_RATIO: f64 = 1.10;

/// For normal noise, the standard deviation over the median absolute deviation.
const MAD_TO_SIGMA: f64 = 1.4826;

/// One pair's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OfPair {
    /// Positions of its two nodes, in any order.
    pub ends: [usize; 2],
    /// What was measured, above 0.
    pub value: f64,
}

/// Nodes and pairs that are unlike the rest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outliers {
    /// Nodes, with the ratio of what their pairs show to what is common, the
    /// furthest from 1 first.
    pub nodes: Vec<(usize, f64)>,
    /// Pairs, with the ratio of what they show to what their two nodes would
    /// give, the furthest from 1 first.
    pub pairs: Vec<([usize; 2], f64)>,
}

/// What each node adds to the logarithms, and what is each pair's own.
type Parts = (Vec<(usize, f64)>, Vec<([usize; 2], f64)>);

/// Nodes without three pairs add nothing.
fn parts(nodes: usize, values: &[OfPair]) -> Option<Parts> {
    let logs: Vec<([usize; 2], f64)> = values
        .iter()
        .filter(|one| one.value > 0.0 && one.value.is_finite())
        .filter(|one| one.ends.iter().all(|&end| end < nodes))
        .map(|one| (one.ends, one.value.ln()))
        .collect();
    let mut of_node: Vec<Vec<f64>> = vec![Vec::new(); nodes];
    for (ends, log) in &logs {
        for &end in ends {
            of_node[end].push(*log);
        }
    }
    let level = |values: Vec<f64>| (values.len() >= LEAST_NODES - 1).then(|| median(values));
    let levels: Vec<Option<f64>> = of_node.into_iter().map(level).collect();
    let known: Vec<f64> = levels.iter().copied().flatten().collect();
    if known.len() < LEAST_NODES {
        return None;
    }
    let common = median(known);
    let adds = |node: usize| levels[node].map_or(0.0, |level| level - common);
    let own = |&([a, b], log): &([usize; 2], f64)| ([a, b], log - common - adds(a) - adds(b));
    Some((
        (0..nodes).map(|node| (node, adds(node))).collect(),
        logs.iter().map(own).collect(),
    ))
}

/// Those far from 0, as ratios.
fn far<T: Copy>(values: Vec<(T, f64)>) -> Vec<(T, f64)> {
    let distances = values.iter().map(|(_, value)| value.abs()).collect();
    let score = SCORE.max(upper_quantile(
        FALSE_ALARM / 2.0 / values.len().max(1) as f64,
    ));
    let limit = (score * MAD_TO_SIGMA * median(distances)).max(LEAST_RATIO.ln());
    let mut far: Vec<(T, f64)> = values
        .into_iter()
        .filter(|(_, value)| value.abs() > limit)
        .collect();
    far.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    far.into_iter()
        .map(|(of, value)| (of, value.exp()))
        .collect()
}

/// 0 for none.
fn median(mut values: Vec<f64>) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    values.sort_by(f64::total_cmp);
    median_of_sorted(&values)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every pair in six blocks, with some noise that repeats itself.
    fn mesh(nodes: usize, factor: impl Fn(usize, usize) -> f64) -> Vec<Vec<OfPair>> {
        let block = |block: usize| {
            let pairs = (0..nodes).flat_map(|a| (a + 1..nodes).map(move |b| [a, b]));
            let value = |[a, b]: [usize; 2]| {
                let noise = ((a * 7919 + b * 104_729 + block * 31) % 101) as f64 / 101.0 - 0.5;
                OfPair {
                    ends: [a, b],
                    value: 60_000.0 * (0.06 * noise).exp() * factor(a, b),
                }
            };
            pairs.map(value).collect()
        };
        (0..6).map(block).collect()
    }

    #[test]
    fn an_even_mesh_has_nothing_to_name() {
        for nodes in [4, 5, 10, 40] {
            let found = named(nodes, &mesh(nodes, |_, _| 1.0)).unwrap();
            assert_eq!(found, Outliers::default(), "{nodes} nodes");
        }
    }

    #[test]
    fn a_slow_node_is_named_once_and_not_as_its_pairs() {
        for nodes in [4, 5, 10, 40] {
            let slow = |a, b| if a == 2 || b == 2 { 2.0 } else { 1.0 };
            let found = named(nodes, &mesh(nodes, slow)).unwrap();
            assert_eq!(found.nodes.len(), 1, "{nodes} nodes: {found:?}");
            let (node, ratio) = found.nodes[0];
            assert_eq!(node, 2);
            assert!((1.8..2.2).contains(&ratio), "{ratio}");
            assert_eq!(found.pairs, [], "{nodes} nodes");
        }
    }

    #[test]
    fn a_slow_pair_is_named_as_a_pair_also_beside_a_slow_node() {
        let slow = |a, b| match (a, b) {
            (1, 4) => 3.0,
            _ if a == 6 || b == 6 => 1.6,
            _ => 1.0,
        };
        let found = named(9, &mesh(9, slow)).unwrap();
        assert_eq!(found.nodes.iter().map(|one| one.0).collect::<Vec<_>>(), [6]);
        assert_eq!(found.pairs.len(), 1, "{found:?}");
        assert_eq!(found.pairs[0].0, [1, 4]);
        assert!((2.7..3.3).contains(&found.pairs[0].1));
    }

    #[test]
    fn what_is_less_than_a_tenth_away_is_left_in_peace() {
        let even = |a, b| if (a, b) == (0, 1) { 1.08 } else { 1.0 };
        let mut blocks = mesh(8, even);
        for one in blocks.iter_mut().flatten() {
            one.value = 60_000.0 * even(one.ends[0], one.ends[1]);
        }
        assert_eq!(named(8, &blocks).unwrap(), Outliers::default());
    }

    #[test]
    fn too_few_to_know_the_rest_are_not_judged() {
        assert_eq!(named(3, &mesh(3, |_, _| 1.0)), None);
        assert_eq!(named(6, &[mesh(6, |_, _| 1.0)[0][..2].to_vec()]), None);
        assert_eq!(named(0, &[]), None);
    }
}

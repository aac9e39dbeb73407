//! Meshes whose nodes and pairs are alike but for noise.

use plumbline_stats::mesh::{OfPair, Outliers, named};

use super::{Noise, Source};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Mesh {
    pub(crate) nodes: usize,
    pub(crate) blocks: usize,
    pub(crate) noise: Noise,
    /// Standard deviation of a logarithm (median absolute deviation and more
    /// where it has none). Half as much is common to all pairs of a node in a block.
    pub(crate) sigma: f64,
    /// How many times as slow node 1 is.
    pub(crate) slow_node: Option<f64>,
}

impl Mesh {
    pub(crate) fn measure(&self, seed: u64) -> Vec<Vec<OfPair>> {
        let mut source = Source::new(seed, self.noise);
        let nodes = self.nodes;
        let pairs = || (0..nodes).flat_map(move |a| (a + 1..nodes).map(move |b| [a, b]));
        let mut block = |_| {
            let of_node = (0..nodes).map(|_| 0.5 * source.unit());
            let of_node: Vec<f64> = of_node.collect();
            let value = |ends: [usize; 2]| {
                let slow = self.slow_node.filter(|_| ends.contains(&1));
                let noise = source.unit() + of_node[ends[0]] + of_node[ends[1]];
                let value = 60_000.0 * (self.sigma * noise).exp() * slow.unwrap_or(1.0);
                OfPair { ends, value }
            };
            pairs().map(value).collect()
        };
        (0..self.blocks).map(&mut block).collect()
    }

    /// In percent of meshes: an innocent is named, and node 1 is.
    pub(crate) fn names(&self, repetitions: u64) -> (f64, f64) {
        let (mut innocent, mut found) = (0, 0);
        for seed in 0..repetitions {
            let blocks = self.measure(seed);
            let now = named(self.nodes, &blocks).unwrap();
            innocent += u32::from(self.accuses_innocents(&now));
            found += u32::from(now.nodes.iter().any(|(node, _)| *node == 1));
        }
        let percent = |count: u32| 100.0 * f64::from(count) / repetitions as f64;
        (percent(innocent), percent(found))
    }

    fn accuses_innocents(&self, found: &Outliers) -> bool {
        let is_guilty = |node: usize| self.slow_node.is_some() && node == 1;
        !found.pairs.is_empty() || found.nodes.iter().any(|(node, _)| !is_guilty(*node))
    }
}

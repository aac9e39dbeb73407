//! Samples behind a quantile (L-21), blocks until intervals are narrow, and names
//! in a mesh (C-19).

mod noise;

use noise::bursts::{Bursty, by_exceedances, by_medians};
use noise::mesh::Mesh;
use noise::precision::{Stopped, look, stopped};
use noise::{Noise, Source};
use plumbline_stats::exceedance::{ExceedanceSlice, effective_samples};
use plumbline_stats::mesh::{blocks_to_name, named};

const BURSTS: Bursty = Bursty {
    bursts: 10.0,
    length: 4.0,
    share: 0.1,
    requests: 50,
};

#[test]
fn intervals_of_p99_hold_in_bursts() {
    let windows = 240;
    let now = BURSTS.coverage(0.99, windows, by_exceedances);
    // 93 %, less two standard deviations of so few windows.
    assert!(
        now >= 0.93 - 2.0 * (0.93 * 0.07 / windows as f64).sqrt(),
        "{now}"
    );
    let before = BURSTS.coverage(0.99, windows, by_medians);
    assert!(before < 0.7, "the former way: {before}");
}

#[test]
fn one_burst_is_worth_little_and_even_exceedances_nearly_all() {
    let even: Vec<ExceedanceSlice> = (0..100)
        .map(|i| ExceedanceSlice {
            beyond: [0, 1, 2, 1][i * 7 % 4],
            samples: 100,
        })
        .collect();
    assert!(effective_samples(&even) > 7_000.0);
    let mut burst = vec![
        ExceedanceSlice {
            beyond: 0,
            samples: 100
        };
        100
    ];
    burst[40..44].fill(ExceedanceSlice {
        beyond: 25,
        samples: 100,
    });
    assert!(effective_samples(&burst) < 200.0);
}

#[test]
fn too_few_slices_are_worth_nothing_and_none_beyond_all() {
    let slice = ExceedanceSlice {
        beyond: 0,
        samples: 100,
    };
    assert_eq!(effective_samples(&[slice; 9]), 0.0);
    assert_eq!(effective_samples(&[]), 0.0);
    assert_eq!(effective_samples(&[slice; 20]), 2_000.0);
}

#[test]
fn blocks_added_until_intervals_are_narrow_leave_them_true() {
    let runs = 200;
    // 94 %, less two standard deviations of so few runs.
    let least = 94.0 - 200.0 * (0.94 * 0.06 / runs as f64).sqrt();
    for (comparisons, most_blocks) in [(1, 25.0), (6, 35.0)] {
        let Stopped {
            holds,
            blocks,
            reached,
        } = stopped(comparisons, 8, 0.012, runs);
        assert!(holds >= least, "{comparisons}: {holds}");
        assert!(reached > 95.0, "{comparisons}: {reached}");
        let are_few = 8.5 < blocks && blocks < most_blocks;
        assert!(are_few, "{comparisons}: {blocks}");
    }
}

#[test]
fn a_shift_of_all_log_ratios_adds_no_block() {
    let effects = [0.0, 0.01, 0.02, -0.5];
    for (comparisons, target) in [(1, 0.012), (6, 0.02)] {
        for seed in 0..20 {
            let added = |&effect: &f64| {
                let mut source = Source::new(seed, Noise::Normal);
                let blocks = source.family(&vec![effect; comparisons], 8);
                look(&blocks, target, seed).1
            };
            let added: Vec<usize> = effects.iter().map(added).collect();
            assert!(added.iter().all(|it| *it == added[0]), "{added:?}");
        }
    }
}

#[test]
fn at_most_one_innocent_in_20_meshes_is_named() {
    for noise in [Noise::Normal, Noise::HeavyTailed, Noise::Skewed] {
        for (nodes, blocks, meshes) in [(4, 5, 400), (8, 4, 400), (20, 3, 300), (40, 3, 200)] {
            let mesh = Mesh {
                nodes,
                blocks,
                noise,
                sigma: 0.2,
                slow_node: None,
            };
            let (innocent, _) = mesh.names(meshes);
            // One in 20, and two standard deviations of so few meshes.
            let most = 5.0 + 200.0 * (0.05 * 0.95 / meshes as f64).sqrt();
            assert!(innocent <= most, "{mesh:?}: {innocent}");
            let slow = Mesh {
                slow_node: Some(3.0),
                ..mesh
            };
            let (innocent, found) = slow.names(meshes);
            assert!(innocent <= most, "{slow:?}: {innocent}");
            assert!(found > 80.0, "{slow:?}: {found}");
        }
    }
}

#[test]
fn too_few_blocks_name_nobody() {
    assert_eq!((blocks_to_name(4), blocks_to_name(40)), (5, 3));
    let slow = Mesh {
        nodes: 4,
        blocks: 4,
        noise: Noise::Normal,
        sigma: 0.01,
        slow_node: Some(3.0),
    };
    assert_eq!(named(4, &slow.measure(1)).unwrap().nodes, []);
    let enough = Mesh { blocks: 5, ..slow };
    let found = named(4, &enough.measure(1)).unwrap();
    assert_eq!(found.nodes.len(), 1, "{found:?}");
    assert_eq!(found.nodes[0].0, 1);
    assert_eq!(named(3, &slow.measure(1)), None);
}

#[test]
fn a_slow_pair_is_named_beside_a_slow_node() {
    let mesh = Mesh {
        nodes: 9,
        blocks: 5,
        noise: Noise::HeavyTailed,
        sigma: 0.02,
        slow_node: Some(1.6),
    };
    let mut blocks = mesh.measure(3);
    for one in blocks.iter_mut().flatten().filter(|one| one.ends == [4, 7]) {
        one.value *= 3.0;
    }
    let found = named(9, &blocks).unwrap();
    assert_eq!(found.nodes.iter().map(|one| one.0).collect::<Vec<_>>(), [1]);
    assert_eq!(found.pairs.len(), 1, "{found:?}");
    assert_eq!(found.pairs[0].0, [4, 7]);
    assert!((2.7..3.3).contains(&found.pairs[0].1));
}

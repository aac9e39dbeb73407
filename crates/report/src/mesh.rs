//! Pairs of nodes in words and as a map of letters, for every format.

use plumbline_experiment::Layout;

use crate::analysis::{Mesh, MeshMap, MeshOutlier, PairValue, Summary};
use crate::figures::{Table, head};
use crate::{describe, number};

/// Lines of a list before the rest is counted only.
const MOST_NAMED: usize = 20;

/// Nodes up to which a map of letters fits into 80 columns.
const MOST_LETTERS: usize = 26;

/// How bad a pair is against what is typical.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grade {
    Better,
    Typical,
    Worse10,
    Worse25,
    Worse50,
    Worse100,
    /// No trial counts.
    Dead,
}

impl Grade {
    pub(crate) const ALL: [Self; 7] = [
        Self::Better,
        Self::Typical,
        Self::Worse10,
        Self::Worse25,
        Self::Worse50,
        Self::Worse100,
        Self::Dead,
    ];

    /// Of a pair that was tried.
    pub(crate) fn of(map: &MeshMap, pair: &PairValue) -> Self {
        let badness = pair.value.and_then(|value| map.badness(value));
        match badness {
            None => Self::Dead,
            Some(bad) if bad < 1.0 / 1.10 => Self::Better,
            Some(bad) if bad <= 1.10 => Self::Typical,
            Some(bad) if bad <= 1.25 => Self::Worse10,
            Some(bad) if bad <= 1.50 => Self::Worse25,
            Some(bad) if bad <= 2.00 => Self::Worse50,
            Some(_) => Self::Worse100,
        }
    }

    /// Its letter on a map, what a legend says, and its class on a page.
    pub(crate) fn shown(self) -> (char, &'static str, &'static str) {
        match self {
            Self::Better => ('-', "over 10 % better", "h h0"),
            Self::Typical => ('.', "typical", "h h1"),
            Self::Worse10 => ('+', "10–25 % worse", "h h2"),
            Self::Worse25 => ('*', "25–50 % worse", "h h3"),
            Self::Worse50 => ('#', "50–100 % worse", "h h4"),
            Self::Worse100 => ('@', "over 100 % worse", "h h5"),
            Self::Dead => ('x', "no valid trial", "h hdead"),
        }
    }
}

/// `Median latency between nodes, pod, rr`.
pub(crate) fn title(summary: &Summary, map: &MeshMap) -> String {
    let treatment = &summary.treatments[map.treatment].treatment;
    format!(
        "{} between nodes: {}, {}",
        map.metric.words,
        describe::clean(&treatment.label),
        describe::clean(treatment.task.name())
    )
}

/// How many pairs there are and what is typical of them.
pub(crate) fn about(mesh: &Mesh, map: &MeshMap) -> String {
    let how = match mesh.layout {
        Layout::Mesh => "every node with every other, in rounds that share no node",
        Layout::Pairs => "pairs that ran at the same time",
    };
    let typical = map.typical.map_or_else(
        || "no pair has a valid trial".to_owned(),
        |value| format!("the median pair has {}", in_words(map, value)),
    );
    format!("{} nodes, {how}; {typical}", mesh.nodes.len())
}

/// A sentence for each node and each pair that is unlike the rest, or that none
/// is.
pub(crate) fn findings(mesh: &Mesh, map: &MeshMap) -> Vec<String> {
    let name = |node: usize| describe::clean(&mesh.nodes[node]);
    let mut found: Vec<String> = Vec::new();
    for dead in &map.dead {
        let [a, b] = dead.ends;
        found.push(if a == b {
            format!(
                "node {}: none of its {} pairs has a valid trial",
                name(a),
                dead.pairs
            )
        } else {
            format!("pair {} – {}: no valid trial", name(a), name(b))
        });
    }
    for one in map.unlike.iter().flatten() {
        found.push(unlike(mesh, map, one));
    }
    let more = found.len().saturating_sub(MOST_NAMED);
    if more > 0 {
        found.truncate(MOST_NAMED);
        found.push(format!("and {more} more, which the JSON report has"));
    }
    if map.unlike.is_none() && map.typical.is_some() {
        let least = plumbline_stats::mesh::LEAST_NODES;
        found.push(match mesh.layout {
            Layout::Mesh => {
                format!("outliers are named from a mesh of {least} nodes on; these are fewer")
            }
            Layout::Pairs => "each node is in one pair, so none is named as an outlier".to_owned(),
        });
    } else if let Some(needed) = map.blocks_needed.filter(|_| map.typical.is_some()) {
        found.push(format!(
            "outliers are named from {needed} blocks on; these are fewer"
        ));
    } else if found.is_empty() && map.typical.is_some() {
        found.push("no node and no pair is unlike the rest".to_owned());
    }
    found
}

fn unlike(mesh: &Mesh, map: &MeshMap, one: &MeshOutlier) -> String {
    let name = |node: usize| describe::clean(&mesh.nodes[node]);
    let change = number::signed_percent(one.ratio - 1.0);
    let judged = if one.is_worse { "worse" } else { "better" };
    let metric = map.metric.words;
    let [a, b] = one.ends;
    if one.is_node() {
        let pairs = map.pairs.iter().filter(|pair| pair.ends.contains(&a));
        let mut partners: Vec<usize> = pairs.map(|pair| pair.ends[0] + pair.ends[1] - a).collect();
        partners.sort_unstable();
        partners.dedup();
        return format!(
            "node {} is {judged} than the rest: {metric} {change} over its {} pairs",
            name(a),
            partners.len()
        );
    }
    let values = [[a, b], [b, a]].into_iter().filter_map(|ends| {
        let at = map.pairs.iter().find(|pair| pair.ends == ends)?;
        let value = in_words(map, at.value?);
        Some(format!("{value} from {}", name(ends[0])))
    });
    let values: Vec<String> = values.collect();
    format!(
        "pair {} – {} is {judged} than its nodes: {metric} {change} ({})",
        name(a),
        name(b),
        values.join(", ")
    )
}

/// How outliers are found.
pub(crate) const RULE: &str = "A node’s level is the median over its pairs; a pair is set against \
    the levels of its two nodes (the first sweep of Tukey’s median polish, on logarithms). Named is \
    what is more than 10 % and more than 3.5 robust standard deviations away (Iglewicz and Hoaglin \
    1993), and ranks so high or low in block after block that chance would name anything in one \
    mesh of 20.";

fn in_words(map: &MeshMap, value: f64) -> String {
    describe::value(map.metric, value)
}

/// What one pair showed, for a cell of a map or of a table.
pub(crate) fn pair_text(map: &MeshMap, pair: &PairValue) -> String {
    let value = pair.value.map(|value| in_words(map, value));
    value.unwrap_or_else(|| Grade::Dead.shown().1.to_owned())
}

/// A row for each node and a letter for each pair, with a legend; `None` when
/// there are too many nodes, or pairs that make no map.
pub(crate) fn letters(mesh: &Mesh, map: &MeshMap) -> Option<Vec<String>> {
    let nodes = mesh.nodes.len();
    if mesh.layout != Layout::Mesh || nodes > MOST_LETTERS {
        return None;
    }
    let number_of = |node: usize| format!("{:>2}", node + 1);
    let width = mesh.nodes.iter().map(|name| name.chars().count()).max();
    let width = width.unwrap_or(0).min(20);
    let indent = " ".repeat(width + 3);
    let numbers: Vec<String> = (0..nodes).map(number_of).collect();
    let mut lines = vec![format!("{indent} {}", numbers.join(" "))];
    for row in 0..nodes {
        let letter = |column: usize| match map.cell([row, column]) {
            _ if row == column => ' ',
            Some(pair) => Grade::of(map, pair).shown().0,
            None => '?',
        };
        let letters: Vec<String> = (0..nodes).map(|at| format!(" {}", letter(at))).collect();
        let name: String = describe::clean(&mesh.nodes[row])
            .chars()
            .take(width)
            .collect();
        lines.push(format!(
            "{name:<width$} {} {}",
            number_of(row),
            letters.join(" ")
        ));
    }
    let legend = Grade::ALL.map(|grade| {
        let (letter, words, _) = grade.shown();
        format!("{letter} {words}")
    });
    lines.push(format!(
        "Rows send, columns receive. {}.",
        legend.join(", ")
    ));
    Some(lines)
}

/// The pairs in a table, for those that make no map.
pub(crate) fn table(mesh: &Mesh, map: &MeshMap) -> Option<Table> {
    if mesh.layout != Layout::Pairs {
        return None;
    }
    let name = |node: usize| describe::clean(&mesh.nodes[node]);
    let rows = map.pairs.iter().map(|pair| {
        let against = pair.value.zip(map.typical);
        let against = against.map(|(value, typical)| number::signed_percent(value / typical - 1.0));
        vec![
            name(pair.ends[0]),
            name(pair.ends[1]),
            pair_text(map, pair),
            against.unwrap_or_else(|| number::NONE.to_owned()),
            pair.trials.to_string(),
        ]
    });
    Some(Table {
        head: head([
            "sender",
            "receiver",
            map.metric.words,
            "against the median",
            "trials",
        ]),
        rows: rows.collect(),
    })
}

//! The flags of the command line that stand for keys of the file.

use crate::factor::{FACTORS, Factor, LevelSyntax};

/// A flag of the command line that stands for a key of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag {
    /// Without dashes in front, such as `request-size`.
    pub name: &'static str,
    /// Where its key stands, such as `design.`.
    section: &'static str,
    /// What the help calls its value.
    pub value_name: &'static str,
    /// One line of help.
    pub help: &'static str,
}

/// Factors of the scene are called as their flags.
const FACTORS_SECTION: &str = "factors.";

const fn row(
    name: &'static str,
    section: &'static str,
    value_name: &'static str,
    help: &'static str,
) -> Flag {
    Flag {
        name,
        section,
        value_name,
        help,
    }
}

/// Those that are no factors of the scene, in the order in which they have to be
/// applied: a workload must be chosen before its rate is set.
#[rustfmt::skip] // a table reads better
const TABLE: &[Flag] = &[
    row("baseline", "", "NAME", "Network that the others are compared with"),
    row("workload", "", "KINDS", "Workloads: rr, crr, stream, datagram, http, programming, launch, survive"),
    row("during", "workload.", "COMMAND",
        "Command that `survive` runs on each path while traffic goes on"),
    row("rate", "workload.", "N", "Requests per second over all connections"),
    row("connections", "workload.", "N", "Concurrent connections"),
    row("request-size", "workload.", "BYTES", "Bytes of a request or message"),
    row("response-size", "workload.", "BYTES", "Bytes of a response"),
    row("wait", "workload.", "HOW",
        "How the sender waits for the next request: block, or spin to send on time"),
    row("duration", "design.", "TIME", "Measured window of each trial, such as 500ms"),
    row("blocks", "design.", "N", "Number of randomised blocks; each runs every treatment once"),
    row("rotate", "design.", "HOW",
        "Whether networks take turns where the target allows it: on (default), off"),
    row("slice", "design.", "TIME", "How long each of their turns is [default: 25ms]"),
    row("precision", "design.", "SHARE",
        "Add blocks until all main intervals are this narrow, such as 3%, or the budget ends"),
    row("budget", "design.", "TIME",
        "Longest time for all trials, such as 5m: windows get shorter, or blocks fewer"),
    row("control", "design.", "HOW",
        "Whether the baseline is also compared with a copy of itself: on or off [default: on in the \
         lab, in one cluster and between two hosts, where two networks or more are compared with it]"),
    row("seed", "design.", "N", "Seed of the order and the arrivals; random unless given"),
];

/// Factors that have a flag. `--pairs` is that of pairs of nodes, so pairs on one path are
/// asked for by `--set factors.pairs=4`.
fn factors() -> impl Iterator<Item = &'static Factor> {
    FACTORS.iter().filter(|factor| factor.name != "pairs")
}

impl Flag {
    /// All of them, in the order in which they have to be applied.
    pub fn all() -> impl Iterator<Item = Self> {
        let factors = factors().filter(|factor| factor.is_key());
        factors.map(Self::of).chain(TABLE.iter().copied())
    }

    /// Those that describe a scene: of factors whose levels no target has to read.
    pub fn of_scene() -> impl Iterator<Item = Self> {
        let is_read = |factor: &&Factor| matches!(factor.reading, LevelSyntax::Level(_));
        factors().filter(is_read).map(Self::of)
    }

    fn of(factor: &Factor) -> Self {
        row(factor.name, FACTORS_SECTION, factor.value_name, factor.help)
    }

    /// The key, as `--set` writes it.
    pub(super) fn key(&self) -> String {
        match self.section {
            FACTORS_SECTION => format!("{FACTORS_SECTION}{}", self.name),
            section => format!("{section}{}", self.name.replace('-', "_")),
        }
    }
}

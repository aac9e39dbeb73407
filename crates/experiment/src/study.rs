//! Results that others published, as data: what a run is put beside.
//!
//! They serve to compare the *shape* of a result: which network is faster, in what
//! order, by what factor (P-2). Absolute times belong to the authors' machines.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::Scene;
use crate::factor::level;

/// One published study.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// The name that an experiment's key `study` takes.
    pub name: String,
    /// Title of the publication.
    pub title: String,
    /// Who measured.
    pub author: String,
    /// Year of publication.
    pub year: u16,
    /// Where it can be read.
    pub source: String,
    /// Machines, software and method, in a sentence.
    pub setup: String,
    /// What the authors found, in sentences.
    pub findings: Vec<String>,
    /// What was measured, where no figures were published.
    #[serde(default)]
    pub measured: Vec<StudyMeasurement>,
    /// The published figures.
    #[serde(default, rename = "table")]
    pub tables: Vec<FigureTable>,
}

/// An experiment of a study without figures.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyMeasurement {
    /// What it is called.
    pub name: String,
    /// How it was done.
    pub how: String,
}

/// One table of figures.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureTable {
    /// Name of our workload that corresponds to this table; `None` when no run is put
    /// beside it.
    pub workload: Option<String>,
    /// What the figures are of.
    pub about: String,
    /// Requests per second behind them.
    pub rate: Option<f64>,
    /// That rate as a share of the highest, 0 to 1.
    pub share_of_maximum: Option<f64>,
    /// Unit of all figures.
    pub unit: FigureUnit,
    /// What each column is: a percentile such as `p99.5`, `max`, `mean`, or `handshake`.
    pub columns: Vec<String>,
    /// Label of the row that the others are compared with.
    pub reference: String,
    /// One for each network or setting.
    pub rows: Vec<FigureRow>,
}

/// One row of a table.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureRow {
    /// As published.
    pub label: String,
    /// The network of ours that builds the same path, if any.
    pub network: Option<String>,
    /// Levels of other factors of ours that make the same, as files write them.
    #[serde(default)]
    pub levels: BTreeMap<String, String>,
    /// One figure for each column, in the table's unit.
    pub values: Vec<f64>,
}

/// What of ours stands beside a column of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FigureKind {
    /// A percentile of the latency, as a quantile from 0 to 1.
    Quantile(f64),
    /// The mean latency.
    Mean,
    /// The median time to open a connection.
    Handshake,
}

/// Unit of published figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FigureUnit {
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
}

impl FigureUnit {
    /// How many nanoseconds one is.
    pub fn nanoseconds(self) -> f64 {
        match self {
            Self::Us => 1e3,
            Self::Ms => 1e6,
        }
    }
}

macro_rules! studies {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../published/", $name, ".toml")))),+]
    };
}

/// The studies that come with the program, by name and text.
const STUDIES: &[(&str, &str)] = studies![
    "machinezone-2016",
    "pani-2016",
    "gojek-kubecon-2018",
    "centurylink-2016",
    "kube-proxy-2025",
];

impl Study {
    /// The study of a name.
    pub fn find(name: &str) -> Option<Self> {
        let (_, text) = STUDIES.iter().find(|(known, _)| *known == name)?;
        Some(toml::from_str(text).expect("a test reads every study that comes with the program"))
    }

    /// The names of all studies.
    pub fn names() -> Vec<&'static str> {
        STUDIES.iter().map(|(name, _)| *name).collect()
    }
}

impl FigureTable {
    /// What of ours stands beside a column; `None` beside one that we have nothing for.
    pub fn figure(&self, column: usize) -> Option<FigureKind> {
        match self.columns.get(column)?.as_str() {
            "mean" => Some(FigureKind::Mean),
            "handshake" => Some(FigureKind::Handshake),
            name => {
                let percent: f64 = name.strip_prefix('p')?.parse().ok()?;
                let is_inside = 0.0 < percent && percent < 100.0;
                is_inside.then_some(FigureKind::Quantile(percent / 100.0))
            }
        }
    }

    /// The row that the others are compared with.
    pub fn reference_row(&self) -> Option<&FigureRow> {
        self.rows.iter().find(|row| row.label == self.reference)
    }
}

impl FigureRow {
    /// Whether it was measured on what this scene stands for. A row that names no network
    /// and no level is beside none.
    pub fn is_of(&self, scene: &Scene) -> bool {
        let is_network = |network: &String| scene.name() == network.as_str();
        let has =
            |(factor, wanted): (&String, &String)| level(scene, factor).as_ref() == Some(wanted);
        (self.network.is_some() || !self.levels.is_empty())
            && self.network.iter().all(is_network)
            && self.levels.iter().all(has)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Enforcer, FACTORS, Policies};

    fn studies() -> Vec<Study> {
        let find = |name: &str| Study::find(name).expect(name);
        Study::names().into_iter().map(find).collect()
    }

    #[test]
    fn every_study_is_read_and_says_where_it_is_from() {
        let studies = studies();
        assert_eq!(studies.len(), 5);
        for (study, name) in studies.iter().zip(Study::names()) {
            assert_eq!(study.name, name);
            for text in [&study.title, &study.author, &study.source, &study.setup] {
                assert!(!text.is_empty(), "{name}");
            }
            assert!((2010..2030).contains(&study.year), "{name}");
            assert!(!study.findings.is_empty(), "{name}");
            assert!(
                !study.tables.is_empty()
                    || !study.measured.is_empty()
                    || name.starts_with("centurylink"),
                "{name} has neither figures nor what was measured"
            );
        }
        assert_eq!(Study::find("nobody-1999"), None);
    }

    /// A slip in copying breaks one of these.
    #[test]
    fn every_table_is_whole_and_its_percentiles_rise() {
        let mut tables = 0;
        for study in studies() {
            for table in &study.tables {
                tables += 1;
                let what = format!("{}: {}", study.name, table.about);
                let reference = table.reference_row().expect(&what);
                assert_eq!(reference, &table.rows[0], "{what}");
                for row in &table.rows {
                    assert_eq!(row.values.len(), table.columns.len(), "{what}");
                    assert!(
                        row.values.iter().all(|v| *v > 0.0 && v.is_finite()),
                        "{what}"
                    );
                    for factor in row.levels.keys() {
                        let is_known = FACTORS.iter().any(|one| one.name == factor);
                        assert!(is_known, "{what}: {factor}");
                    }
                    let is_percentile = matches!(table.figure(0), Some(FigureKind::Quantile(_)));
                    let rises = !is_percentile || row.values.is_sorted();
                    assert!(rises, "{what}: {}", row.label);
                }
                let share = table.share_of_maximum.unwrap_or(0.5);
                assert!(0.0 < share && share <= 1.0, "{what}");
            }
        }
        assert_eq!(tables, 13);
    }

    #[test]
    fn columns_are_percentiles_or_are_not() {
        let table = &Study::find("machinezone-2016").unwrap().tables[0];
        let figures: Vec<_> = (0..7).map(|column| table.figure(column)).collect();
        assert_eq!(figures[0], Some(FigureKind::Quantile(0.95)));
        assert_eq!(figures[5..], [None, None], "the maximum, and no column");
        let first = |name: &str| Study::find(name).unwrap().tables[0].figure(0);
        assert_eq!(first("pani-2016"), Some(FigureKind::Mean));
        assert_eq!(first("kube-proxy-2025"), Some(FigureKind::Handshake));
    }

    #[test]
    fn a_row_is_of_the_scenes_that_have_its_levels() {
        let row = &Study::find("pani-2016").unwrap().tables[0].rows[1];
        let scene = |count, enforcer| Scene {
            policies: Policies {
                count,
                enforcer,
                ..Policies::default()
            },
            ..Scene::of("romana")
        };
        assert!(row.is_of(&scene(10, Enforcer::Romana1)));
        assert!(!row.is_of(&scene(10, Enforcer::Romana)));
        assert!(!row.is_of(&scene(50, Enforcer::Romana1)));
        let nowhere = FigureRow {
            levels: BTreeMap::new(),
            ..row.clone()
        };
        assert!(!nowhere.is_of(&scene(10, Enforcer::Romana1)));
    }

    #[test]
    fn what_is_no_study_is_refused() {
        let text = include_str!("../published/machinezone-2016.toml");
        for (from, to) in [
            ("unit = \"ms\"", "unit = \"s\""),
            ("values = [0.5,", "values = [\"0.5\","),
            ("author =", "autor ="),
        ] {
            assert!(text.contains(from));
            assert!(
                toml::from_str::<Study>(&text.replacen(from, to, 1)).is_err(),
                "{to}"
            );
        }
    }
}

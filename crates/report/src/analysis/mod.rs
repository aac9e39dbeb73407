//! What one run showed: a pure function of its raw trials.

pub(crate) mod account;
mod beside;
mod cluster;
mod comparison;
mod cost;
mod distribution;
mod effect;
mod latency;
mod launch;
mod law;
mod ledger;
mod level;
mod margin;
mod measured;
mod mesh;
mod metric;
mod neighbour;
mod notice;
mod packets;
mod precision;
mod programming;
mod rates;
mod registry;
mod section;
mod set_up;
mod survive;
mod treatment;
mod unit;

pub use account::{Account, Failure};
pub use beside::{Beside, BesideRow, BesideTable, OrderAt};
pub use cluster::{FoundCluster, FoundNode};
pub use comparison::Comparison;
pub use cost::{Cost, CostByContext};
pub use distribution::{Distribution, DistributionRow};
pub use effect::Effect;
pub use latency::Latency;
pub use launch::{LaunchQuantile, LaunchSummary, LaunchTimes, NotedPod};
pub use law::{Law, LawBend, LawCrossing, LawPoint, LawShape};
pub use level::{ALPHA, LEVEL};
pub use measured::{Measured, Outlier, TrialValue};
pub use mesh::{Mesh, MeshMap, MeshOutlier, PairValue};
pub use metric::{Metric, Quantity, Resolution, Value};
pub use neighbour::Neighbour;
pub use notice::Notice;
pub use packets::Packets;
pub use precision::ReachedPrecision;
pub use rates::Rates;
pub use registry::REGISTRY;
pub use section::Section;
pub use set_up::SetUpCost;
pub use survive::{FlowSummary, ForbiddenSummary, LATE_NS, NotedRepetition, SurviveSummary};
pub use treatment::TreatmentSummary;
pub use unit::Unit;

pub(crate) use comparison::log_ratios;
pub(crate) use cost::may_hide;
pub(crate) use effect::{Unjudged, judge};
pub(crate) use ledger::{part_of, unenforced};
pub(crate) use level::alpha;
pub(crate) use margin::{margin, resolution};
pub(crate) use registry::{leading, metrics_among, metrics_of};

use std::collections::BTreeSet;

use plumbline_experiment::{Link, Plan, Treatment, TreatmentId};
use plumbline_record::{Build, Floor, Maximum, Run, Trial};

use ledger::Ledger;

/// What one run showed: each treatment by itself, and against its baseline.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Name of the experiment.
    pub experiment: String,
    /// The question that it answers.
    pub question: String,
    /// When the run started, RFC 3339, UTC.
    pub started: String,
    /// `lab`, `kubernetes` or `hosts`.
    pub target: String,
    /// The clusters that it measured; none outside of Kubernetes.
    pub clusters: Vec<FoundCluster>,
    /// The link between the nodes that the plan asked for.
    pub link: Link,
    /// Builds of Plumbline that ran its trials: more than one where a run was
    /// resumed by another.
    pub builds: usize,
    /// Lines of the run that were left out because they are damaged.
    pub damaged_lines: u32,
    /// What the generator measures where there is no network (L-13).
    pub floor: Option<Floor>,
    /// The maxima that loads are shares of.
    pub maxima: Vec<Maximum>,
    /// One for each treatment, `treatments[id].treatment.id == id`.
    pub treatments: Vec<TreatmentSummary>,
    /// Every treatment against its baseline, by treatment, then metric.
    pub comparisons: Vec<Comparison>,
    /// Copies of baselines against these, on the metrics that count: what the machine
    /// shows where nothing differs (D11). Judged by themselves; each `treatment` is none
    /// of [`treatments`](Self::treatments).
    pub controls: Vec<Comparison>,
    /// Treatments beside neighbours against the same beside one that takes CPU and sends
    /// nothing, on the metrics that count: what is left is not the loss of that CPU. Judged by
    /// themselves.
    pub against_cpu: Vec<Comparison>,
    /// How narrow the intervals became, where the plan asks.
    pub precision: Option<ReachedPrecision>,
    /// Treatments that belong in one table or chart, in reading order.
    pub sections: Vec<Section>,
    /// What each further one of a factor costs, where one has three levels that are
    /// numbers: those of one factor, workload and metric together.
    pub laws: Vec<Law>,
    /// Factors whose levels are numbers, but too few for a line.
    pub without_a_line: Vec<&'static str>,
    /// The run beside the published study that its plan names.
    pub beside: Option<Beside>,
    /// For each section its latencies as histograms, where the experiment asks.
    pub distributions: Vec<Option<Distribution>>,
    /// What each pair of nodes showed, where there are several.
    pub mesh: Option<Mesh>,
    /// Reasons to distrust, without repetition.
    pub notices: Vec<Notice>,
    /// What it took to bring up each network, where that was done for the run.
    pub set_ups: Vec<SetUpCost>,
    /// What became of the planned trials.
    pub account: Account,
    /// Blocks of the plan.
    pub blocks: usize,
    /// The shortest and the longest slice in which treatments took turns, nanoseconds;
    /// `None` where all had windows of their own.
    pub slices_ns: Option<(u64, u64)>,
}

/// Trials of the build that began the run do not name it.
fn builds(trials: &[Trial]) -> usize {
    let named = trials.iter().filter_map(|trial| trial.build.as_ref());
    let others: BTreeSet<&Build> = named.collect();
    let has_own = trials.is_empty() || trials.iter().any(|trial| trial.build.is_none());
    others.len() + usize::from(has_own)
}

fn slices_ns(trials: &[Trial]) -> Option<(u64, u64)> {
    let seen = trials.iter().filter_map(|it| it.observation.as_ref());
    let lengths = seen.filter_map(|it| Some(it.common.rotation?.slice_ns));
    lengths
        .map(|ns| (ns, ns))
        .reduce(|(least, most), (ns, _)| (least.min(ns), most.max(ns)))
}

impl Summary {
    /// Analyses a run. Any run and any trials give a summary: what cannot be
    /// computed is absent, and said so by a notice or the account.
    pub fn new(run: &Run, trials: &[Trial]) -> Self {
        let begun = trials.iter().map(|trial| trial.block as usize + 1).max();
        let whole = run.plan.clone().as_begun(begun.unwrap_or(0));
        let run = &Run {
            plan: whole.clone().without_controls(),
            ..run.clone()
        };
        let plan = &run.plan;
        let ledger = Ledger::new(&whole, trials);
        let known = with_known_baselines(&whole);
        let mut treatments: Vec<_> = known
            .iter()
            .map(|treatment| TreatmentSummary::new(treatment, &ledger))
            .collect();
        let compared = plan.treatments.len();
        let compare = |of: &[TreatmentSummary], all: &[TreatmentSummary]| {
            comparison::compare_all(of, all, run)
        };
        let mut controls = compare(&treatments[compared..], &treatments);
        controls.retain(|one| one.is_primary);
        treatments.truncate(compared);
        let ledger = Ledger::new(plan, trials);
        let mesh = Mesh::new(plan, &treatments, &ledger);
        if mesh.is_some() {
            // Where nodes differ, the mesh says which; a value alone does not.
            treatments.iter_mut().for_each(|one| one.outliers.clear());
        }
        let comparisons = compare(&treatments, &treatments);
        let mut against_cpu = compare(&comparison::against_cpu(&treatments), &treatments);
        against_cpu.retain(|one| one.is_primary);
        let sections = section::sections(&treatments, &comparisons);
        let builds = builds(trials);
        let clusters = cluster::found(run, trials);
        let (laws, without_a_line) = law::laws(plan, &treatments, &run.fingerprint);
        let asked = plan.distribution;
        let distribution = |one| asked.then(|| Distribution::new(one, &treatments)).flatten();
        Self {
            distributions: sections.iter().map(distribution).collect(),
            experiment: plan.experiment.clone(),
            question: question(plan, &run.provenance.target, clusters.len()),
            clusters,
            started: run.provenance.started.clone(),
            target: run.provenance.target.clone(),
            link: plan.link,
            builds,
            damaged_lines: run.damaged_lines,
            floor: run.provenance.floor,
            maxima: run.maxima.clone(),
            mesh,
            laws,
            without_a_line,
            beside: Beside::new(plan, &treatments, &ledger),
            precision: ReachedPrecision::new(plan, &comparisons),
            controls,
            against_cpu,
            sections,
            notices: notice::notices(run, &ledger, builds, !comparisons.is_empty()),
            set_ups: set_up::costs(trials),
            account: Account::new(plan, &ledger),
            blocks: plan.blocks.len(),
            slices_ns: slices_ns(trials),
            treatments,
            comparisons,
        }
    }

    /// Whether the build that made the run recorded what a metric is made of.
    pub(crate) fn records(&self, metric: &Metric) -> bool {
        treatment::is_recorded(metric, &self.treatments)
    }

    /// The comparison of a treatment with its baseline on the metric of a name.
    pub fn comparison(&self, treatment: TreatmentId, metric: &str) -> Option<&Comparison> {
        self.comparisons
            .iter()
            .find(|one| one.treatment == treatment && one.metric.name() == metric)
    }

    /// Whether any trial counts.
    pub fn has_results(&self) -> bool {
        self.account.kept > 0
    }

    /// Whether planned trials are missing because the run was stopped.
    pub fn is_cut_off(&self) -> bool {
        self.account.missing > 0
    }
}

/// What the tour asks about, by this build and by earlier ones.
const OF_A_LAB: [&str; 2] = [
    "container networks cost on this machine",
    "the networks that this machine can build cost",
];

/// The plan's question. That of the tour was asked of a lab, whatever its target.
fn question(plan: &Plan, target: &str, clusters: usize) -> String {
    let paths = match target {
        "kubernetes" if clusters > 1 => "the paths through these clusters cost",
        "kubernetes" => "the paths through this cluster cost",
        "hosts" => "the paths between these hosts cost",
        _ => return plan.question.clone(),
    };
    let asked = plan.question.clone();
    OF_A_LAB.iter().fold(asked, |it, of| it.replace(of, paths))
}

/// The treatments of a plan by position, without baselines that are not in it.
fn with_known_baselines(plan: &Plan) -> Vec<Treatment> {
    let mut treatments = plan.treatments.clone();
    let count = treatments.len();
    for (position, treatment) in treatments.iter_mut().enumerate() {
        treatment.id = position;
        let is_known = |&baseline: &TreatmentId| baseline < count && baseline != position;
        treatment.baseline = treatment.baseline.filter(is_known);
    }
    treatments
}

//! What each further one of something costs: a straight line through the levels of a
//! factor that are numbers, in absolute units, where effects are ratios.

use plumbline_experiment::metric::Role;
use plumbline_experiment::{
    FACTORS, Factor, Plan, Scene, ServiceProxy, Services, Treatment, TreatmentId,
};
use plumbline_record::Fingerprint;
use plumbline_stats::Interval;
use plumbline_stats::line::{Crossing, FittedLine, LEAST_LEVELS};
use plumbline_stats::order::MedianOfRuns;
use plumbline_stats::verdict::Verdict;

use super::level::alpha;
use super::margin::{margin, resolution};
use super::metric::{Metric, Quantity};
use super::registry::{REGISTRY, metrics_of};
use super::treatment::{TreatmentSummary, is_recorded};
use super::unit::Unit;

/// How one metric grows with one factor, in treatments that differ in nothing else.
#[derive(Clone, Debug)]
pub struct Law {
    /// The factor.
    pub factor: &'static str,
    /// What one more of it is called.
    pub one: &'static str,
    /// What sets its treatments apart from those of other laws of the factor.
    pub label: String,
    /// The workload.
    pub workload: String,
    /// The metric, a cost.
    pub metric: &'static Metric,
    /// Whether the metric is one of those that count.
    pub is_primary: bool,
    /// What was measured, by rising level.
    pub points: Vec<LawPoint>,
    /// The line, fitted in each block.
    pub line: FittedLine,
    /// Where the slope lies, by itself, and no narrower than the meter; `None` with too
    /// few blocks.
    pub interval: Option<Interval>,
    /// What it says of all that lies between the first level and the last, as a share
    /// of the cost at the first: equivalent is flat.
    pub verdict: Option<Verdict>,
    /// The largest share of the cost that does not matter in practice (D9).
    pub margin: f64,
    /// Whether a straight line is enough; `None` with too few blocks.
    pub bend: Option<LawBend>,
    /// Where it crosses others of the same factor, workload and metric.
    pub crossings: Vec<LawCrossing>,
}

/// What was measured at one level.
#[derive(Clone, Debug)]
pub struct LawPoint {
    /// The level.
    pub level: f64,
    /// As files write it.
    pub shown: String,
    /// The treatment.
    pub treatment: TreatmentId,
    /// The median over its trials.
    pub over_trials: Option<MedianOfRuns>,
}

/// How far the levels are from the line.
#[derive(Clone, Debug)]
pub struct LawBend {
    /// What is sure.
    pub shape: LawShape,
    /// The level that is furthest from the line, as files write it.
    pub at: String,
    /// How far it lies above the line, as a share of the cost there.
    pub share: f64,
    /// How far any level may lie from the line, as a share of the cost there: the
    /// furthest end of the intervals of all levels, which hold together.
    pub reach: f64,
    /// p-value that the line is straight.
    pub p: f64,
}

/// Whether a cost grows evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LawShape {
    /// No level is further from the line than matters in practice.
    Straight,
    /// Some level is off the line.
    Bent,
    /// The data do not decide.
    Open,
}

/// Where two laws cross.
#[derive(Clone, Debug)]
pub struct LawCrossing {
    /// Position of the other law in [`Summary::laws`](super::Summary::laws).
    pub with: usize,
    /// The level, and how well it is known.
    pub crossing: Crossing,
}

impl Law {
    /// Whether both are of one factor under one workload, and so belong in one chapter.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        (self.factor, &self.workload) == (other.factor, &other.workload)
    }

    /// Whether they belong in one chart.
    pub(crate) fn is_comparable(&self, other: &Self) -> bool {
        self.is_beside(other) && self.metric == other.metric
    }

    /// Whether it is worth a sentence: a metric that counts, or a latency that is no
    /// tail.
    pub(crate) fn is_told(&self) -> bool {
        let is_latency = self.metric.quantity == Quantity::Latency;
        self.is_primary || is_latency && self.metric.tail().is_none()
    }
}

/// All laws of a run, those of one factor, workload and metric together; and the factors whose
/// levels are numbers, but too few in all treatments that differ in nothing else for a line.
pub(super) fn laws(
    plan: &Plan,
    treatments: &[TreatmentSummary],
    fingerprint: &Fingerprint,
) -> (Vec<Law>, Vec<&'static str>) {
    let mut laws: Vec<Law> = Vec::new();
    let mut without_a_line = Vec::new();
    for factor in FACTORS {
        let mut groups = groups(factor, treatments);
        let longest = groups.iter().map(Vec::len).max().unwrap_or(0);
        if (2..LEAST_LEVELS).contains(&longest) {
            without_a_line.push(factor.name);
        }
        groups.retain(|group| group.len() >= LEAST_LEVELS);
        for (at, group) in groups.iter().enumerate() {
            let label = label(factor, &groups, at);
            for (metric, role) in metrics_of(&group[0].treatment.task) {
                let is_primary = role == Role::Primary;
                let source = LawSource {
                    metric,
                    is_primary,
                    plan,
                    fingerprint,
                };
                if is_cost(metric) && is_recorded(metric, treatments) {
                    laws.extend(source.law(factor, &label, group));
                }
            }
        }
    }
    let workload = |law: &Law| {
        let mut names = treatments.iter().map(|one| one.treatment.task.name());
        names.position(|name| name == law.workload)
    };
    let metric = |law: &Law| REGISTRY.iter().position(|one| one == law.metric);
    let factor = |law: &Law| FACTORS.iter().position(|one| one.name == law.factor);
    laws.sort_by_key(|law| (factor(law), workload(law), metric(law)));
    find_crossings(&mut laws, plan);
    (laws, without_a_line)
}

/// A rate falls as a cost grows, so its line would bend by nature; so does the share of
/// what is lost.
fn is_cost(metric: &Metric) -> bool {
    matches!(metric.unit, Unit::Nanoseconds | Unit::NanosecondsPerByte)
}

/// Treatments that differ in one factor alone, by rising level.
fn groups<'a>(
    factor: &Factor,
    treatments: &'a [TreatmentSummary],
) -> Vec<Vec<&'a TreatmentSummary>> {
    let number = |one: &TreatmentSummary| (factor.number)(&one.treatment.scene);
    let is_like = |one: &TreatmentSummary, other: &TreatmentSummary| {
        let (one, other) = (&one.treatment, &other.treatment);
        is_beside(one, other) && factor.others(&one.scene) == factor.others(&other.scene)
    };
    let mut groups: Vec<Vec<&TreatmentSummary>> = Vec::new();
    for treatment in treatments.iter().filter(|one| number(one).is_some()) {
        match groups.iter_mut().find(|group| is_like(group[0], treatment)) {
            Some(group) => group.push(treatment),
            None => groups.push(vec![treatment]),
        }
    }
    for group in &mut groups {
        group.extend(none(factor, &group[0].treatment, treatments));
        group.sort_by(|a, b| {
            number(a)
                .partial_cmp(&number(b))
                .expect("levels are finite")
        });
        group.dedup_by_key(|one| number(one));
    }
    groups
}

/// Whether both are the same but for their scenes.
fn is_beside(one: &Treatment, other: &Treatment) -> bool {
    one.task == other.task && one.timing == other.timing && one.copy == other.copy
}

/// What has none of our services beside a treatment whose services are a cluster's own. Its
/// proxy has rules around none of ours as around some, so that is a level of the line like any
/// other; in a lab the first service brings the proxy's other rules with it.
fn none<'a>(
    factor: &Factor,
    of: &Treatment,
    treatments: &'a [TreatmentSummary],
) -> Option<&'a TreatmentSummary> {
    if factor.name != "services" || of.scene.services.proxy != ServiceProxy::Own {
        return None;
    }
    let scene = Scene {
        services: Services::default(),
        ..of.scene.clone()
    };
    let mut others = treatments.iter();
    others.find(|one| one.treatment.scene == scene && is_beside(of, &one.treatment))
}

/// What differs between a group and the others; where nothing does, its network or path.
fn label(factor: &Factor, groups: &[Vec<&TreatmentSummary>], at: usize) -> String {
    let words = |group: &[&TreatmentSummary]| {
        let treatment = &group[0].treatment;
        let mut words = factor.others(&treatment.scene);
        words.push(format!("#{}", treatment.copy));
        words
    };
    let of_all: Vec<Vec<String>> = groups.iter().map(|group| words(group)).collect();
    let ours = &of_all[at];
    let differs = |place: &usize| of_all.iter().any(|other| other[*place] != ours[*place]);
    let telling = (0..ours.len())
        .filter(differs)
        .map(|place| ours[place].as_str());
    let telling: Vec<&str> = telling.filter(|word| !word.is_empty()).collect();
    if !telling.is_empty() {
        return telling.join(" ");
    }
    let first = &groups[at][0].treatment;
    let names = [first.scene.network_name(), &first.scene.path, &first.label];
    let name = names.into_iter().find(|name| !name.is_empty());
    name.unwrap_or_default().to_owned()
}

/// What a law is made from beside its treatments.
struct LawSource<'a> {
    metric: &'static Metric,
    is_primary: bool,
    plan: &'a Plan,
    fingerprint: &'a Fingerprint,
}

impl LawSource<'_> {
    /// `None` where fewer than three levels show the metric in any block.
    fn law(&self, factor: &Factor, label: &str, group: &[&TreatmentSummary]) -> Option<Law> {
        let name = self.metric.name();
        let shows =
            |one: &&&TreatmentSummary| one.shows(self.metric) && !one.values_of(name).is_empty();
        let shown: Vec<&TreatmentSummary> = group.iter().filter(shows).copied().collect();
        let point = |of: &&TreatmentSummary| {
            Some(LawPoint {
                level: (factor.number)(&of.treatment.scene)?,
                shown: (factor.level)(&of.treatment.scene),
                treatment: of.id(),
                over_trials: of.over_trials(name),
            })
        };
        let points: Option<Vec<LawPoint>> = shown.iter().map(point).collect();
        let points = points.filter(|points| points.len() >= LEAST_LEVELS)?;
        let levels: Vec<f64> = points.iter().map(|one| one.level).collect();
        let values: Vec<_> = shown.iter().map(|one| self.by_cell(one)).collect();
        let alpha = alpha(self.plan);
        let line = FittedLine::new(&levels, &values, self.plan.pairs(), alpha, self.plan.seed)?;
        let margin = margin(self.metric, shown[0], self.fingerprint);
        let (first, last) = (shown[0], shown[shown.len() - 1]);
        let all = (levels[levels.len() - 1] - levels[0]) / line.at(levels[0]);
        let finest = resolution(self.metric, last, first) / all;
        let slope = line.per_level;
        let interval = slope.alone.high.is_finite().then(|| Interval {
            low: slope.alone.low.min(slope.mean - finest),
            high: slope.alone.high.max(slope.mean + finest),
            ..slope.alone
        });
        // Of a cost that is not above 0 there are no shares.
        let has_shares = all.is_finite() && all > 0.0;
        let verdict = |one: Interval| {
            let share = Interval {
                low: one.low * all,
                high: one.high * all,
                ..one
            };
            Verdict::of(&share, margin, self.metric.direction)
        };
        Some(Law {
            factor: factor.name,
            one: factor.one,
            label: label.to_owned(),
            workload: group[0].treatment.task.name().to_owned(),
            metric: self.metric,
            is_primary: self.is_primary,
            verdict: interval.filter(|_| has_shares).map(verdict),
            bend: bend(&line, &points, margin, alpha),
            points,
            line,
            interval,
            margin,
            crossings: Vec::new(),
        })
    }

    /// The numbers that ratios are made of, by block and pair: flat is a share of the cost.
    fn by_cell(&self, of: &TreatmentSummary) -> Vec<Option<f64>> {
        let mut cells = vec![None; self.plan.blocks.len() * self.plan.pairs()];
        for one in of.values_of(self.metric.name()) {
            if let Some(cell) = cells.get_mut(one.block as usize) {
                *cell = Some(one.in_ratios());
            }
        }
        cells
    }
}

fn bend(line: &FittedLine, points: &[LawPoint], margin: f64, alpha: f64) -> Option<LawBend> {
    let pairs = points.iter().zip(&line.departures);
    let shares = pairs.map(|(point, departure)| {
        let cost = line.at(point.level);
        let far = departure.joint.low.abs().max(departure.joint.high.abs());
        (point, departure.mean / cost, far / cost)
    });
    let shares: Vec<(&LawPoint, f64, f64)> = shares.collect();
    let is_known = |(_, share, reach): &(_, f64, f64)| share.is_finite() && *reach >= 0.0;
    let reach = shares.iter().map(|one| one.2).fold(0.0, f64::max);
    if !shares.iter().all(is_known) || !reach.is_finite() {
        return None;
    }
    let p = line.bend_p();
    let shape = match p {
        _ if reach <= margin => LawShape::Straight,
        p if p <= alpha => LawShape::Bent,
        _ => LawShape::Open,
    };
    let furthest = shares
        .iter()
        .max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
    Some(LawBend {
        shape,
        at: furthest.0.shown.clone(),
        share: furthest.1,
        reach,
        p,
    })
}

/// A crossing of lines says nothing of costs that bend.
fn find_crossings(laws: &mut [Law], plan: &Plan) {
    let range = |law: &Law| (law.points[0].level, law.points[law.points.len() - 1].level);
    let is_bent = |law: &Law| {
        law.bend
            .as_ref()
            .is_none_or(|bend| bend.shape == LawShape::Bent)
    };
    let crossing = |one: &Law, other: &Law| {
        if !one.is_comparable(other) || is_bent(one) || is_bent(other) {
            return None;
        }
        let (ours, theirs) = (range(one), range(other));
        let common = (ours.0.max(theirs.0), ours.1.min(theirs.1));
        let crossing = one
            .line
            .crossing(&other.line, common, alpha(plan), plan.seed);
        crossing.filter(|_| common.0 < common.1)
    };
    for at in 1..laws.len() {
        for before in 0..at {
            if let Some(crossing) = crossing(&laws[before], &laws[at]) {
                laws[before]
                    .crossings
                    .push(LawCrossing { with: at, crossing });
                laws[at].crossings.push(LawCrossing {
                    with: before,
                    crossing,
                });
            }
        }
    }
}

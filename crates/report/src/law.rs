//! What each further one of something costs, in words for every format.

use plumbline_stats::verdict::Verdict;

use plumbline_stats::line::FittedLine;

use crate::analysis::{ALPHA, Beside, Law, LawBend, LawCrossing, LawShape, Unit};
use crate::figures::{Table, head};
use crate::{beside, describe, number};

/// `What each service costs under crr`.
pub(crate) fn title(laws: &[Law]) -> String {
    let first = &laws[0];
    format!(
        "What each {} costs under {}",
        first.one,
        describe::clean(&first.workload)
    )
}

/// What was fitted to what.
pub(crate) fn about(laws: &[Law]) -> String {
    let first = &laws[0];
    let levels: Vec<&str> = first.points.iter().map(|one| one.shown.as_str()).collect();
    format!(
        "A straight line through {} at {}, fitted in each block; the intervals of slopes hold at \
         95{}% each by itself.",
        first.factor,
        levels.join(", "),
        number::NO_BREAK_SPACE
    )
}

/// A sentence for each metric that is worth one, of all laws of a run those of one
/// chapter: `handshake: iptables +11 ns for each service (95 % 10 to 12), straight;
/// nftables flat (at most 0.1 ns for each service)`.
pub(crate) fn sentences(all: &[Law], chapter: &[Law]) -> Vec<String> {
    let of_metric = chapter.chunk_by(Law::is_comparable);
    let told = of_metric.filter(|laws| laws[0].is_told());
    told.map(|laws| sentence(all, laws)).collect()
}

fn sentence(all: &[Law], laws: &[Law]) -> String {
    let mut parts: Vec<String> = laws.iter().map(one).collect();
    for (at, law) in all.iter().enumerate() {
        if !laws[0].is_comparable(law) {
            continue;
        }
        let later = law.crossings.iter().filter(|one| one.with > at);
        parts.extend(later.map(|one| {
            let labels = [law, &all[one.with]].map(|it| describe::clean(&it.label));
            crossing(&labels.join(" and "), law, one)
        }));
    }
    format!("{}: {}", laws[0].metric.words, parts.join("; "))
}

/// A law with its group's name.
fn one(law: &Law) -> String {
    let label = describe::clean(&law.label);
    let bend = law.bend.as_ref().map(|bend| shape(law, bend));
    let each = format!(" for each {}", law.one);
    format!("{label} {}{}", slope(law, &each), bend.unwrap_or_default())
}

/// `+11 ns for each service (95 % 10 to 12)`, with `each` behind the unit.
pub(crate) fn slope(law: &Law, each: &str) -> String {
    let space = number::NO_BREAK_SPACE;
    let ([value, low, high], unit) = estimate(law);
    let plus = |digits: &str| {
        if digits.starts_with('\u{2212}') {
            ""
        } else {
            "+"
        }
    };
    let Some(interval) = law.interval else {
        let sign = plus(&value);
        return format!("{sign}{value}{space}{unit}{each} so far; too few blocks for an interval");
    };
    match law.verdict {
        Some(Verdict::Equivalent) if interval.high > 0.0 => {
            format!("flat (at most {high}{space}{unit}{each})")
        }
        Some(Verdict::Equivalent) => {
            format!("flat (between {low} and {high}{space}{unit}{each})")
        }
        _ if interval.contains(0.0) => {
            format!("between {low} and +{high}{space}{unit}{each}")
        }
        _ => format!(
            "{}{value}{space}{unit}{each} (95{space}% {low} to {high})",
            plus(&value)
        ),
    }
}

/// The slope with the ends of its interval, and their unit.
fn estimate(law: &Law) -> ([String; 3], String) {
    let mean = law.line.per_level.mean;
    let ends = law.interval.map_or([mean; 2], |it| [it.low, it.high]);
    // 1 ns for a byte is 1 s for a gigabyte.
    let (scale, per) = match law.metric.unit {
        Unit::NanosecondsPerByte => (1e9, "/GB"),
        _ => (1.0, ""),
    };
    let (texts, unit) = number::estimate([mean, ends[0], ends[1]].map(|ns| ns * scale));
    (texts, format!("{unit}{per}"))
}

/// What a line looks like; nothing is said of one that is flat and straight.
fn shape(law: &Law, bend: &LawBend) -> String {
    match bend.shape {
        LawShape::Straight if law.verdict == Some(Verdict::Equivalent) => String::new(),
        LawShape::Straight => ", straight".to_owned(),
        LawShape::Bent => format!(", bent: {}", furthest(law, bend)),
        LawShape::Open => format!(
            ", perhaps bent (by {} at most)",
            number::percent(bend.reach)
        ),
    }
}

/// `12 % above the line at 30000`.
fn furthest(law: &Law, bend: &LawBend) -> String {
    let side = if bend.share < 0.0 { "below" } else { "above" };
    let at = describe::clean(&bend.at);
    let share = number::percent(bend.share.abs());
    format!("{share} {side} the line at {} = {at}", law.factor)
}

/// `iptables and nftables cross at services = 60 (95 % 50 to 72)`.
pub(crate) fn crossing(who: &str, of: &Law, found: &LawCrossing) -> String {
    let [at, low, high] = {
        let interval = found.crossing.interval;
        [found.crossing.at, interval.low, interval.high].map(|level| number::count(level.round()))
    };
    format!(
        "{who} cross at {} = {at} (95{}% {low} to {high})",
        of.factor,
        number::NO_BREAK_SPACE
    )
}

/// What the study beside the run says of the same: `Pani Networks (2016) published +0.21 µs
/// for each policy`. `None` where it has no three levels of any law.
pub(crate) fn published(study: Option<&Beside>, laws: &[Law]) -> Option<String> {
    let study = study?;
    let of_law = |law: &Law| {
        let (levels, costs): (Vec<f64>, Vec<f64>) = study.published_of(law).into_iter().unzip();
        let costs: Vec<_> = costs.into_iter().map(|cost| vec![Some(cost)]).collect();
        let line = FittedLine::new(&levels, &costs, 1, ALPHA, 0)?;
        let change = number::signed_duration(line.per_level.mean);
        let label = describe::clean(&law.label);
        Some(format!("{change} for each {} as {label}", law.one))
    };
    let slopes: Vec<String> = laws.iter().filter_map(of_law).collect();
    (!slopes.is_empty()).then(|| {
        format!(
            "{} published {}, on other machines",
            beside::name(study),
            slopes.join(", ")
        )
    })
}

/// All laws of a chapter.
pub(crate) fn table(laws: &[Law]) -> Table {
    let row = |law: &Law| {
        let ([value, low, high], unit) = estimate(law);
        let exploratory = if law.is_primary { "" } else { " (exploratory)" };
        let text = |value: f64| describe::value(law.metric, value);
        let at_zero = law.line.at_zero;
        let bounds = at_zero.alone;
        let interval = bounds.high.is_finite();
        let interval =
            interval.then(|| format!(" ({} to {})", text(bounds.low), text(bounds.high)));
        let bend = law.bend.as_ref();
        let none = || number::NONE.to_owned();
        vec![
            describe::clean(&law.label),
            format!("{}{exploratory}", law.metric.words),
            format!("{value}{}{unit}", number::NO_BREAK_SPACE),
            law.interval
                .map_or_else(none, |_| format!("{low} to {high}")),
            text(at_zero.mean) + &interval.unwrap_or_default(),
            bend.map_or_else(none, |bend| furthest(law, bend)),
            bend.map_or_else(none, |bend| format!("{:.4}", bend.p)),
            law.line.blocks().to_string(),
        ]
    };
    let mut head = head(["network", "metric"]);
    head.push(format!("each {}", laws[0].one));
    head.extend(
        [
            "95 % interval",
            "at zero",
            "furthest from the line",
            "p that it is straight",
            "blocks",
        ]
        .map(str::to_owned),
    );
    Table {
        head,
        rows: laws.iter().map(row).collect(),
    }
}

//! The whole file read into types: every rule that needs no machine holds.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::asked::Word;
use crate::ceiling::{
    MAX_ALL_ENDPOINTS, MAX_BLOCKS, MAX_BUDGET, MAX_LIMIT, MAX_RETRIES, MAX_SETTINGS,
};
use crate::factor::{FACTORS, LevelSyntax, WrittenLevel};
use crate::keys;
use crate::load::{self, TimedTask};
use crate::nearest::suggestion;
use crate::rotation::{SLICE_NS, SLICES};
use crate::section::{self, FileSection};
use crate::study::Study;
use crate::tree::{Data, SectionTable, SpannedValue};
use crate::variant::{self, VariantSection};
use crate::{
    Factor, Plan, Provision, Scene, Services, SpecError, Timing, Wanted, expand, link, looks,
    metric, provision,
};

/// Phases where a file says nothing.
const TIMING: Timing = Timing {
    warm_up_ns: 100_000_000,
    measure_ns: 1_000_000_000,
    drain_ns: 200_000_000,
};

/// What a budget of time may be at least.
const MIN_BUDGET: Duration = Duration::from_secs(1);

/// One combination of the factors that need no target to read, as a scene without a
/// network.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) scene: Scene,
    /// What distinguishes it from the other settings in labels, such as ` same-node`;
    /// empty where there is only one.
    pub(crate) suffix: String,
}

impl Setting {
    /// Its scene with the network of another one.
    pub(crate) fn of(&self, network: &Scene) -> Scene {
        self.scene.with_network_of(network)
    }
}

/// An experiment in which only the machine is still open.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    /// The plan without its treatments and blocks.
    pub(crate) outline: Plan,
    pub(crate) baseline: Word,
    pub(crate) networks: Vec<Word>,
    /// Networks of which something is set differently.
    pub(crate) variants: Vec<VariantSection>,
    /// Paths within each network; empty for the paths that the network itself implies.
    pub(crate) paths: Vec<Word>,
    /// All combinations of the other factors of the scene.
    pub(crate) settings: Vec<Setting>,
    pub(crate) loads: Vec<TimedTask>,
    pub(crate) blocks: u32,
    pub(crate) seed: Option<u64>,
    /// Half of the width that intervals may have, where blocks are added for that.
    pub(crate) precision: Option<f64>,
    /// Whether the run ends as soon as its limits are decided.
    pub(crate) sequential: bool,
    /// Whether baselines get controls; `None` where the file says nothing.
    pub(crate) control: Option<bool>,
    /// Longest time that the blocks should take.
    pub(crate) budget: Option<Duration>,
    /// How clusters come and go, where the experiment says.
    pub(crate) provision: Provision,
}

/// Reads everything; the first fault ends it.
pub(crate) fn read(root: &SectionTable) -> Result<Spec, SpecError> {
    let root = FileSection {
        title: "an experiment",
        table: root,
    };
    root.refuse_unknown(keys::ROOT)?;
    let nothing = SectionTable::new();
    let empty = |title| FileSection {
        title,
        table: &nothing,
    };
    let factors = root
        .section("factors", "[factors]")?
        .unwrap_or(empty("[factors]"));
    let design = root
        .section("design", "[design]")?
        .unwrap_or(empty("[design]"));
    factors.refuse_unknown(&keys::factors())?;
    design.refuse_unknown(keys::DESIGN)?;
    let timing = load::timing(&design, TIMING)?;
    let networks = networks(&factors)?;
    let variants = variant::read(&root)?;
    let outline = outline(&root, &design)?;
    let loads = expand::loads(&root, &factors, timing)?;
    let sequential = design.choice("sequential", keys::SWITCH)?.unwrap_or(false);
    if sequential {
        looks::check_limits(&outline, &loads)?;
    }
    Ok(Spec {
        outline,
        baseline: match root.text("baseline")? {
            Some(written) => Word::written(written),
            None => Word::default(usual_baseline(&networks, &variants)),
        },
        networks,
        variants,
        paths: words("path", factors.levels("path")?.unwrap_or_default())?,
        settings: settings(&factors)?,
        loads,
        blocks: design.whole("blocks", 1..=MAX_BLOCKS)?.unwrap_or(10),
        precision: precision(&design, sequential)?,
        sequential,
        control: design.choice("control", keys::SWITCH)?,
        seed: seed(&design)?,
        budget: design.duration("budget", MIN_BUDGET..=MAX_BUDGET)?,
        provision: provision::read(&root)?,
    })
}

/// What is compared with where a file does not say it: where it has settings for every
/// network, the first one as it is.
fn usual_baseline<'a>(networks: &'a [Word], variants: &'a [VariantSection]) -> &'a str {
    let of_each = variants.iter().filter(|it| it.of.is_none());
    let first = networks.first().map(|word| &*word.text);
    let (Some(first), true) = (first, of_each.clone().next().is_some()) else {
        return "host";
    };
    let within = of_each.filter_map(|it| it.network_in(first)).next();
    let named = Wanted::new(within.unwrap_or(first)).name();
    named.unwrap_or("host")
}

/// What a plan takes from the file as it stands there.
fn outline(root: &FileSection<'_>, design: &FileSection<'_>) -> Result<Plan, SpecError> {
    let question = root.text("question")?.map_or("", |(text, _)| text);
    Ok(Plan {
        experiment: name(root)?,
        question: question.to_owned(),
        study: study(root)?,
        seed: 0,
        treatments: Vec::new(),
        controls: 0,
        blocks: Vec::new(),
        precision: None,
        sequential: None,
        rotate: design.choice("rotate", keys::SWITCH)?.unwrap_or(true),
        slice_ns: slice_ns(design)?,
        retries: design.whole("retries", 0..=MAX_RETRIES)?.unwrap_or(2),
        pairing: None,
        limits: limits(root)?,
        link: link::read(root)?,
        distribution: root.boolean("distribution")?.unwrap_or(false),
    })
}

fn slice_ns(design: &FileSection<'_>) -> Result<u64, SpecError> {
    let length = design.duration("slice", SLICES)?;
    Ok(length.map_or(SLICE_NS, |it| it.as_nanos() as u64))
}

/// The name goes into the name of the run directory.
fn name(root: &FileSection<'_>) -> Result<String, SpecError> {
    let Some((name, place)) = root.text("name")? else {
        return Err(SpecError::nowhere(
            "the experiment has no `name`",
            "add name = \"...\" as the first line",
        ));
    };
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if (1..=64).contains(&name.len()) && name.chars().all(fine) {
        return Ok(name.to_owned());
    }
    Err(SpecError::at(
        place,
        format!("\"{name}\" cannot name an experiment"),
        "use 1 to 64 letters, digits, `-` or `_`: the run directory is named after it",
    ))
}

/// The name of a study that exists.
fn study(root: &FileSection<'_>) -> Result<Option<String>, SpecError> {
    let Some((name, place)) = root.text("study")? else {
        return Ok(None);
    };
    let known = Study::names();
    if known.contains(&name) {
        return Ok(Some(name.to_owned()));
    }
    Err(SpecError::at(
        place,
        format!("there is no published study `{name}` in this program"),
        suggestion(name, &known),
    ))
}

fn networks(factors: &FileSection<'_>) -> Result<Vec<Word>, SpecError> {
    match factors.levels("network")? {
        Some(levels) => words("network", levels),
        None => Ok(vec![Word::default("all")]),
    }
}

fn words(key: &str, levels: Vec<&SpannedValue>) -> Result<Vec<Word>, SpecError> {
    let read = |value| section::text(key, value).map(Word::written);
    levels.into_iter().map(read).collect()
}

/// The cross product of the factors whose levels can be read here. The first
/// factor varies slowest. Combinations that differ in nothing that there is, such as
/// the proxies of no services, are one.
pub(crate) fn settings(factors: &FileSection<'_>) -> Result<Vec<Setting>, SpecError> {
    let mut scenes = vec![Scene::default()];
    let mut varied: Vec<&Factor> = Vec::new();
    for factor in FACTORS {
        let LevelSyntax::Level(read) = factor.reading else {
            continue;
        };
        let Some(levels) = factors.levels(factor.name)? else {
            continue;
        };
        if scenes.len() * levels.len() > MAX_SETTINGS {
            return Err(too_many(factors, factor));
        }
        let mut all = Vec::with_capacity(scenes.len() * levels.len());
        for scene in &scenes {
            for value in &levels {
                let mut scene = scene.clone();
                read(WrittenLevel(value), &mut scene)?;
                all.push(scene);
            }
        }
        scenes = all;
        refuse_repeated(factor, &scenes, &levels)?;
        varied.extend((levels.len() > 1).then_some(factor));
    }
    let mut settings: Vec<Setting> = Vec::new();
    for scene in scenes.into_iter().map(Scene::normalised) {
        if !settings.iter().any(|it| it.scene == scene) {
            let suffix = suffix(&varied, &scene);
            settings.push(Setting { scene, suffix });
        }
    }
    refuse_idle(factors, &settings)?;
    for setting in &settings {
        check_services(&setting.scene.services)?;
    }
    Ok(settings)
}

/// Refused before they are made: each of some lists may be short, and their product fill
/// the memory.
fn too_many(factors: &FileSection<'_>, last: &Factor) -> SpecError {
    let problem = format!("the factors make more than {MAX_SETTINGS} combinations");
    match factors.table.get(last.name) {
        Some(entry) => SpecError::at(&entry.key, problem, "use fewer levels"),
        None => SpecError::nowhere(problem, "use fewer levels"),
    }
}

/// Each is allowed by itself, and their product may be too much.
fn check_services(services: &Services) -> Result<(), SpecError> {
    if !services.are_too_many() {
        return Ok(());
    }
    Err(SpecError::nowhere(
        format!(
            "{} services of {} endpoints each are more than {MAX_ALL_ENDPOINTS} endpoints",
            services.count, services.endpoints
        ),
        "use fewer services, or fewer endpoints",
    ))
}

fn suffix(varied: &[&Factor], scene: &Scene) -> String {
    let labels = varied.iter().map(|factor| (factor.label)(scene));
    let labels = labels.filter(|label| !label.is_empty());
    labels.map(|label| format!(" {label}")).collect()
}

/// A factor of something that no scene has would seem to vary something.
fn refuse_idle(factors: &FileSection<'_>, settings: &[Setting]) -> Result<(), SpecError> {
    for factor in FACTORS {
        let (Some(entry), Some(of)) = (factors.table.get(factor.name), factor.of) else {
            continue;
        };
        let whole = FACTORS.iter().find(|it| it.name == of);
        let is_there = |it: &Setting| whole.is_none_or(|of| of.departs(&it.scene).is_some());
        if !settings.iter().any(is_there) {
            return Err(SpecError::at(
                &entry.key,
                format!(
                    "there are no {of}, of which `{}` says something",
                    factor.name
                ),
                format!("add `{of}` to [factors], or remove this key"),
            ));
        }
    }
    Ok(())
}

/// Each level may stand once. `levels` are those of the factor that was
/// multiplied last, and so those of the first scenes.
fn refuse_repeated(
    factor: &Factor,
    scenes: &[Scene],
    levels: &[&SpannedValue],
) -> Result<(), SpecError> {
    for (at, value) in levels.iter().enumerate() {
        if scenes[..at].contains(&scenes[at]) {
            return Err(SpecError::at(
                &value.place,
                format!("this level of `{}` is listed twice", factor.name),
                "remove one; only a network may be listed twice, to compare it with itself",
            ));
        }
    }
    Ok(())
}

fn seed(design: &FileSection<'_>) -> Result<Option<u64>, SpecError> {
    let Some(value) = design.get("seed") else {
        return Ok(None);
    };
    match value.data {
        Data::Integer(seed) if seed >= 0 => Ok(Some(seed.unsigned_abs())),
        _ => Err(SpecError::at(
            &value.place,
            "`seed` is not a whole number from 0",
            format!("use a number from 0 to {}, or leave it out", i64::MAX),
        )),
    }
}

/// `"3%"` as 0.03.
fn precision(design: &FileSection<'_>, sequential: bool) -> Result<Option<f64>, SpecError> {
    let Some(value) = design.get("precision") else {
        return Ok(None);
    };
    if sequential {
        return Err(SpecError::at(
            &value.place,
            "a sequential run ends by its limits, and not by the precision of its intervals",
            "remove `precision` or `sequential`",
        ));
    }
    match section::percent(value) {
        Some(share) if (0.001..=1.0).contains(&share) => Ok(Some(share)),
        _ => Err(SpecError::at(
            &value.place,
            "`precision` is not half of the width of an interval",
            "write a percentage from 0.1 to 100, such as \"3%\"",
        )),
    }
}

fn limits(root: &FileSection<'_>) -> Result<BTreeMap<String, f64>, SpecError> {
    let Some(limits) = root.section("limits", "[limits]")? else {
        return Ok(BTreeMap::new());
    };
    let known = metric::names();
    limits
        .table
        .iter()
        .map(|(metric, entry)| {
            if !known.contains(&metric.as_str()) {
                return Err(SpecError::at(
                    &entry.key,
                    format!("`{metric}` is not a metric that can be limited"),
                    suggestion(metric, &known),
                ));
            }
            Ok((metric.clone(), percentage(metric, &entry.value)?))
        })
        .collect()
}

fn percentage(metric: &str, value: &SpannedValue) -> Result<f64, SpecError> {
    match section::percent(value) {
        Some(share) if (0.0..=MAX_LIMIT).contains(&share) => Ok(share),
        _ => Err(SpecError::at(
            &value.place,
            format!("the limit of `{metric}` is not a percentage"),
            "write the largest overhead that is allowed, such as \"10%\"",
        )),
    }
}

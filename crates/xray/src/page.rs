//! What was found, as a page: a bar of hops for each network, all on one scale.

use std::path::{Path, PathBuf};

use askama::Template;
use plumbline_record::write_atomically;
use plumbline_report::html::{HOPS, STYLE};

use crate::account::{HopTime, MeanTime, NetworkHops, Xray, kind};
use crate::error::XrayError;
use crate::hop::Trip;
use crate::show::{LEAST_NS, micros};

/// Kinds of hops that have a colour of their own, 1 to 8; the others share the next.
const COLOURS: usize = 8;
/// What programs and their scheduler take, whatever the network: in grey.
const PROGRAMS: [&str; 4] = [
    "wake-up",
    "responder",
    "stack and wake-up",
    "stack and responder",
];
/// A part of a bar that is at least so wide has its name in it, percent,
const ROOMY: f64 = 7.0;
/// if each letter has so much of that.
const LETTER: f64 = 0.95;

#[derive(Template)]
#[template(path = "xray.html")]
struct HopPage<'a> {
    style: &'static str,
    answers: Vec<String>,
    figures: Vec<HopFigure<'a>>,
    legend: Vec<LegendEntry<'a>>,
    tables: Vec<HopTable<'a>>,
    unfollowed: Vec<String>,
    how: String,
}

/// Bars on one scale.
struct HopFigure<'a> {
    heading: &'static str,
    about: &'static str,
    bars: Vec<HopBar<'a>>,
}

/// The bar of one network.
struct HopBar<'a> {
    name: &'a str,
    total: String,
    parts: Vec<BarPart<'a>>,
    /// What is in no hop, where that is known and more than nothing.
    unaccounted: Option<String>,
    /// Its width, percent.
    rest: String,
    /// Where the baseline's bar ends, percent; `None` in that one itself.
    baseline: Option<String>,
}

struct BarPart<'a> {
    name: &'a str,
    /// What stands beside the pointer.
    title: String,
    colour: usize,
    /// Of the width of the page, percent.
    width: String,
    is_roomy: bool,
    is_first_of_answer: bool,
    /// Whether all hops of the kind together take longer or shorter than in the baseline.
    is_different: bool,
}

struct LegendEntry<'a> {
    name: &'a str,
    colour: usize,
}

struct HopTable<'a> {
    name: &'a str,
    rows: Vec<[String; 5]>,
}

impl Xray {
    /// Writes the page.
    ///
    /// # Errors
    ///
    /// A file that cannot be written.
    pub fn write_page(&self, file: &Path) -> Result<(), XrayError> {
        Ok(write_atomically(file, self.to_html()?.as_bytes())?)
    }

    /// Keeps what was found beside the trials of a run: `hops.json`, and the page, whose path it
    /// gives.
    ///
    /// # Errors
    ///
    /// Files that cannot be written.
    pub fn keep(&self, run: &Path) -> Result<PathBuf, XrayError> {
        let values = self.to_json().to_string();
        write_atomically(&run.join("hops.json"), values.as_bytes())?;
        let page = run.join(HOPS);
        self.write_page(&page)?;
        Ok(page)
    }

    /// The page of what was found: bars, and a table of each network.
    ///
    /// # Errors
    ///
    /// None that this template can have.
    pub fn to_html(&self) -> Result<String, askama::Error> {
        let order = self.by_weight();
        let colour = |hop: &str| {
            let at = order.iter().position(|known| *known == kind(hop));
            at.map_or(0, |at| at.min(COLOURS) + 1)
        };
        let mut figures = vec![self.times(&colour)];
        figures.extend(self.cpu(&colour));
        let programs = self.programs().join(", ");
        let mut legend = Vec::new();
        if !programs.is_empty() {
            legend.push(LegendEntry {
                name: &programs,
                colour: 0,
            });
        }
        for (at, name) in order.iter().take(COLOURS).enumerate() {
            legend.push(LegendEntry {
                name,
                colour: at + 1,
            });
        }
        if order.len() > COLOURS {
            legend.push(LegendEntry {
                name: "other hops",
                colour: COLOURS + 1,
            });
        }
        let answers = self.networks.iter().filter_map(|network| {
            let against = network.against.as_ref()?;
            let (name, baseline) = (&network.name, &against.baseline);
            let more = match against.total.interval {
                Some((low, high)) if low <= 0.0 && high >= 0.0 => {
                    let [low, high] = [low, high].map(|ns| format!("{:.1}", ns / 1e3));
                    format!("between {low} and +{high} µs more").replace('-', "−")
                }
                _ if against.total.ns < 0.0 => format!("{:.1} µs shorter", -against.total.ns / 1e3),
                _ => format!("{:.1} µs longer", against.total.ns / 1e3),
            };
            let hops = against.hops_in_words().join(", ");
            Some(format!(
                "Over {name} a request takes {more} than over {baseline}: {hops}."
            ))
        });
        HopPage {
            style: STYLE,
            answers: answers.collect(),
            figures,
            legend,
            tables: self.networks.iter().map(table).collect(),
            unfollowed: self
                .unfollowed
                .iter()
                .map(|it| format!("{} was not followed: {}", it.name, it.why))
                .collect(),
            how: self.how(),
        }
        .render()
    }

    /// How long hops take.
    fn times(&self, colour: &impl Fn(&str) -> usize) -> HopFigure<'_> {
        let time: PartTime = |hop| Some(hop.time);
        let length = |it: &NetworkHops| hops_ns(it, time) + it.unaccounted.ns.max(0.0);
        let scale = Scale::of(self.networks.iter().map(length));
        let baseline = self.networks.first().map(|it| scale.percent(length(it)));
        let bars = self.networks.iter().map(|network| HopBar {
            name: &network.name,
            total: micros(network.total),
            parts: parts(network, scale, colour, time),
            unaccounted: Some(network.unaccounted)
                .filter(|it| it.ns > 0.0)
                .map(micros),
            rest: scale.percent(network.unaccounted.ns),
            baseline: network.against.as_ref().and(baseline.clone()),
        });
        HopFigure {
            heading: "Hops of a request and of its answer",
            about: "in the order in which packets meet them, on one scale. In full colour what \
                    takes another time than in the first network; the dashed line is where that \
                    one ends. What is hollow is in no hop; where nothing is, hops add up to more \
                    than the time beside them.",
            bars: bars.collect(),
        }
    }

    /// How long a CPU works in them; `None` where that is not told.
    fn cpu(&self, colour: &impl Fn(&str) -> usize) -> Option<HopFigure<'_>> {
        let totals: Option<Vec<_>> = self.networks.iter().map(|it| it.cpu).collect();
        let totals = totals?;
        let time: PartTime = |hop| hop.cpu;
        let scale = Scale::of(self.networks.iter().map(|it| hops_ns(it, time)));
        let first = self.networks.first();
        let baseline = first.map(|it| scale.percent(hops_ns(it, time)));
        let bars = self.networks.iter().zip(&totals);
        let bars = bars.map(|(network, total)| HopBar {
            name: &network.name,
            total: micros(*total),
            parts: parts(network, scale, colour, time),
            unaccounted: None,
            rest: String::new(),
            baseline: network.against.as_ref().and(baseline.clone()),
        });
        Some(HopFigure {
            heading: "CPU by hop",
            about: "the same without what waits: for a CPU to take a packet from its receive \
                    queue, in a queueing discipline, and until a program runs. What CPUs do \
                    beside the way of a request, as for acknowledgements, is not in it.",
            bars: bars.collect(),
        })
    }

    /// The kinds of all hops of the network, those that take longest first.
    fn by_weight(&self) -> Vec<&str> {
        let mut sums: Vec<(&str, f64)> = Vec::new();
        let hops = self.hops_of_all();
        for hop in hops.filter(|it| !PROGRAMS.contains(&&*it.name)) {
            let kind = kind(&hop.name);
            match sums.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, sum)) => *sum += hop.time.ns,
                None => sums.push((kind, hop.time.ns)),
            }
        }
        sums.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        sums.into_iter().map(|(kind, _)| kind).collect()
    }

    /// What is there of the programs.
    fn programs(&self) -> Vec<&'static str> {
        let is_there = |name: &&str| self.hops_of_all().any(|hop| hop.name == *name);
        PROGRAMS.into_iter().filter(is_there).collect()
    }

    fn hops_of_all(&self) -> impl Iterator<Item = &HopTime> {
        self.networks.iter().flat_map(|it| &it.hops)
    }
}

/// What the width of a page stands for.
#[derive(Clone, Copy)]
struct Scale {
    longest_ns: f64,
}

impl Scale {
    /// The longest of these bars takes all of it, nanoseconds.
    fn of(bars: impl Iterator<Item = f64>) -> Self {
        Self {
            longest_ns: bars.fold(f64::MIN_POSITIVE, f64::max),
        }
    }

    fn width(self, ns: f64) -> f64 {
        ns.max(0.0) / self.longest_ns * 100.0
    }

    fn percent(self, ns: f64) -> String {
        format!("{:.2}", self.width(ns))
    }
}

/// What of a hop is shown.
type PartTime = fn(&HopTime) -> Option<MeanTime>;

/// How long the hops of a bar are together, nanoseconds: more than the latency where what is
/// unaccounted is below nothing.
fn hops_ns(network: &NetworkHops, time: PartTime) -> f64 {
    let parts = network.hops.iter().filter_map(time);
    parts.map(|it| it.ns.max(0.0)).sum()
}

fn parts<'a>(
    network: &'a NetworkHops,
    scale: Scale,
    colour: &impl Fn(&str) -> usize,
    time: PartTime,
) -> Vec<BarPart<'a>> {
    let first_of_answer = network.hops.iter().position(|it| it.trip == Trip::Answer);
    let part = |(at, hop): (usize, &'a HopTime)| {
        let of = time(hop)?;
        Some(BarPart {
            name: &hop.name,
            title: format!("{} {}: {} µs", arrow(hop.trip), hop.name, micros(of)),
            colour: colour(&hop.name),
            width: scale.percent(of.ns),
            is_roomy: scale.width(of.ns) >= ROOMY.max(LETTER * hop.name.chars().count() as f64),
            is_first_of_answer: first_of_answer == Some(at),
            is_different: of == hop.time && differs(network, at),
        })
    };
    network.hops.iter().enumerate().filter_map(part).collect()
}

/// Whether a hop, with all that are compared together with it, takes a different time than in the
/// baseline.
fn differs(network: &NetworkHops, at: usize) -> bool {
    let against = network.against.as_ref();
    let named = against.into_iter().flat_map(|it| &it.by_name);
    let mut of_hop = named.filter(|it| it.has(network, at));
    of_hop.any(|it| it.time.is_different() && it.time.ns.abs() >= LEAST_NS)
}

fn table(network: &NetworkHops) -> HopTable<'_> {
    let hops = network.hops.iter().map(|hop| {
        [
            arrow(hop.trip).to_string(),
            hop.name.clone(),
            hop.at.clone(),
            micros(hop.time),
            hop.cpu.map(micros).unwrap_or_default(),
        ]
    });
    let sum = |name: &str, time, cpu: Option<MeanTime>| {
        let cpu = cpu.map(micros).unwrap_or_default();
        [
            String::new(),
            name.to_owned(),
            String::new(),
            micros(time),
            cpu,
        ]
    };
    let sums = [
        sum("unaccounted", network.unaccounted, None),
        sum("unobserved", network.alone, network.cpu),
        sum("observed", network.watched, None),
    ];
    HopTable {
        name: &network.name,
        rows: hops.chain(sums).collect(),
    }
}

fn arrow(trip: Trip) -> char {
    match trip {
        Trip::Request => '→',
        Trip::Answer => '←',
    }
}

#[cfg(test)]
mod tests {
    use crate::sum::tests::two;

    #[test]
    fn bars_are_on_one_scale_and_say_what_differs() {
        let page = two().to_html().unwrap();
        // host takes 12.5 µs of the 17.9 of vxlan.
        assert!(page.contains("style=\"left: 69.8"), "{page}");
        assert!(
            page.contains(
                "Over vxlan a request takes 5.4 µs longer than over host: +5.4 in vxlan."
            ),
            "{page}"
        );
        assert_eq!(
            page.matches("different\" title=\"→ vxlan: 5.4").count(),
            2,
            "{page}"
        );
        assert!(!page.contains("different\" title=\"→ node stack"), "{page}");
        assert!(page.contains("tun was not followed: packets were lost sight of"));
    }

    /// The numbers behind a word in a text, up to a percent sign.
    fn percents(text: &str, word: &str) -> Vec<f64> {
        let behind = text.split(word).skip(1);
        let number = |it: &str| it.split('%').next().unwrap().parse().unwrap();
        behind.map(number).collect()
    }

    #[test]
    fn hops_that_add_up_to_more_than_the_latency_fit_on_the_scale() {
        let mut found = two();
        for network in &mut found.networks {
            network.total.ns -= 4_000.0;
            network.unaccounted.ns -= 4_000.0;
        }
        let page = found.to_html().unwrap();
        let times = page.split("</figure>").next().unwrap();
        let bars = times.split("<div class=\"bar\">").skip(1);
        let lengths: Vec<f64> = bars
            .map(|bar| percents(bar, "style=\"width: ").iter().sum())
            .collect();
        let [host, vxlan] = lengths[..] else {
            panic!("{page}")
        };
        // 12 µs and 17.4.
        assert!(
            (host - 68.97).abs() < 0.1 && (vxlan - 100.0).abs() < 0.1,
            "{lengths:?}"
        );
        assert_eq!(percents(times, "style=\"left: "), [68.97], "{page}");
        assert!(!times.contains("class=\"rest\""), "{page}");
    }

    #[test]
    fn what_rounds_do_not_tell_is_not_said() {
        let mut found = two();
        let against = found.networks[1].against.as_mut().unwrap();
        against.total.interval = Some((-2_000.0, 9_000.0));
        let page = found.to_html().unwrap();
        let said = "a request takes between −2.0 and +9.0 µs more than over host";
        assert!(page.contains(said), "{page}");
    }

    #[test]
    fn a_name_becomes_no_markup() {
        let mut found = two();
        found.networks[1].name = "<script>".to_owned();
        assert!(!found.to_html().unwrap().contains("<script>"));
    }
}

//! What was found, as a page: a bar of hops for each network, all on one scale.

use std::path::{Path, PathBuf};

use askama::Template;
use plumbline_record::write_atomically;
use plumbline_report::html::{HOPS, STYLE};

use crate::account::{HopTime, NetworkHops, Xray, kind};
use crate::error::XrayError;
use crate::hop::Trip;
use crate::show::{LEAST_NS, micros};

/// Kinds of hops that have a colour of their own, 1 to 8; the others share the next.
const COLOURS: usize = 8;
/// What programs and their scheduler take, whatever the network: in grey.
const PROGRAMS: [&str; 2] = ["wake-up", "responder"];
/// A part of a bar that is at least so wide has its name in it, percent.
const ROOMY: f64 = 7.0;

#[derive(Template)]
#[template(path = "xray.html")]
struct HopPage<'a> {
    style: &'static str,
    answers: Vec<String>,
    bars: Vec<HopBar<'a>>,
    legend: Vec<LegendEntry<'a>>,
    tables: Vec<HopTable<'a>>,
    unfollowed: Vec<String>,
    how: String,
}

/// The bar of one network.
struct HopBar<'a> {
    name: &'a str,
    total: String,
    parts: Vec<BarPart<'a>>,
    unaccounted: String,
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
    rows: Vec<[String; 4]>,
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
        let longest = self.networks.iter().map(|it| it.total.ns);
        let longest = longest.fold(f64::MIN_POSITIVE, f64::max);
        let percent = |ns: f64| format!("{:.2}", ns.max(0.0) / longest * 100.0);
        let baseline = self.networks.first().map(|it| percent(it.total.ns));
        let bars = self.networks.iter().map(|network| HopBar {
            name: &network.name,
            total: micros(network.total),
            parts: parts(network, longest, &colour),
            unaccounted: micros(network.unaccounted),
            rest: percent(network.unaccounted.ns),
            baseline: network.against.as_ref().and(baseline.clone()),
        });
        let mut legend = vec![LegendEntry {
            name: "wake-up, responder",
            colour: 0,
        }];
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
            let more = against.total.ns;
            let longer = if more < 0.0 { "shorter" } else { "longer" };
            Some(format!(
                "Over {} a request takes {:.1} µs {longer} than over {}: {}.",
                network.name,
                more.abs() / 1e3,
                against.baseline,
                against.hops_in_words().join(", "),
            ))
        });
        HopPage {
            style: STYLE,
            answers: answers.collect(),
            bars: bars.collect(),
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

    /// The kinds of all hops of the network, those that take longest first.
    fn by_weight(&self) -> Vec<&str> {
        let mut sums: Vec<(&str, f64)> = Vec::new();
        let hops = self.networks.iter().flat_map(|it| &it.hops);
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
}

fn parts<'a>(
    network: &'a NetworkHops,
    longest: f64,
    colour: &impl Fn(&str) -> usize,
) -> Vec<BarPart<'a>> {
    let first_of_answer = network.hops.iter().position(|it| it.trip == Trip::Answer);
    let part = |(at, hop): (usize, &'a HopTime)| {
        let width = hop.time.ns.max(0.0) / longest * 100.0;
        BarPart {
            name: &hop.name,
            title: format!("{} {}: {} µs", arrow(hop.trip), hop.name, micros(hop.time)),
            colour: colour(&hop.name),
            width: format!("{width:.2}"),
            is_roomy: width >= ROOMY,
            is_first_of_answer: first_of_answer == Some(at),
            is_different: differs(network, hop),
        }
    };
    network.hops.iter().enumerate().map(part).collect()
}

/// Whether all hops of its kind together take a different time than in the baseline.
fn differs(network: &NetworkHops, hop: &HopTime) -> bool {
    network.against.as_ref().is_some_and(|against| {
        let mut named = against.by_name.iter();
        named.any(|(name, time)| {
            name == kind(&hop.name) && time.is_different() && time.ns.abs() >= LEAST_NS
        })
    })
}

fn table(network: &NetworkHops) -> HopTable<'_> {
    let hops = network.hops.iter().map(|hop| {
        [
            arrow(hop.trip).to_string(),
            hop.name.clone(),
            hop.at.clone(),
            micros(hop.time),
        ]
    });
    let sum = |name: &str, time| [String::new(), name.to_owned(), String::new(), micros(time)];
    let sums = [
        sum("unaccounted", network.unaccounted),
        sum("in all", network.total),
        sum("unobserved", network.alone),
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
    use crate::account::tests::two;

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
            1,
            "{page}"
        );
        assert!(!page.contains("different\" title=\"→ node stack"), "{page}");
        assert!(page.contains("tun was not followed: packets were lost sight of"));
    }

    #[test]
    fn a_name_becomes_no_markup() {
        let mut found = two();
        found.networks[1].name = "<script>".to_owned();
        assert!(!found.to_html().unwrap().contains("<script>"));
    }
}

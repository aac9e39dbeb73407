//! What each further one of a factor costs, in runs where it is known.

use plumbline_experiment::{Neighbours, Scene, ServicePosition, ServiceProxy, Services, Workload};
use plumbline_report::analysis::{Law, LawShape};
use plumbline_report::{Summary, html, json, markdown, terminal};
use plumbline_stats::verdict::Verdict;

use crate::documented;
use crate::fake::growing::{self, HOST, growing};
use crate::fake::{opening, rr};

const LEVELS: [u64; 4] = [0, 2_000, 8_000, 32_000];

fn ns_for_ns(ns: f64) -> f64 {
    HOST + ns
}

fn flat(_: f64) -> f64 {
    HOST + 10_000.0
}

fn bent(ns: f64) -> f64 {
    HOST + ns + if ns > 0.0 { 9_000.0 } else { 0.0 }
}

/// The law of a network on the median.
fn p50<'a>(summary: &'a Summary, label: &str) -> &'a Law {
    let mut laws = summary.laws.iter();
    let found = laws.find(|one| one.label == label && one.metric.name() == "p50");
    found.unwrap_or_else(|| panic!("no law of {label}"))
}

#[test]
fn levels_of_one_network_make_one_law_although_they_are_in_its_word() {
    let (run, trials) = growing(10, &[("host", ns_for_ns), ("vxlan", flat)], &LEVELS);
    let summary = Summary::new(&run, &trials);
    let law = p50(&summary, "host");
    let levels: Vec<f64> = law.points.iter().map(|one| one.level).collect();
    assert_eq!(levels, LEVELS.map(|ns| ns as f64));
    let interval = law.interval.unwrap();
    assert!(interval.contains(1.0), "{interval:?}");
    assert!(interval.high - interval.low < 0.1, "{interval:?}");
    assert_eq!(law.verdict, Some(Verdict::Worse));
    assert_eq!(law.bend.as_ref().unwrap().shape, LawShape::Straight);
    let at_zero = law.line.at_zero;
    assert!((at_zero.mean / HOST - 1.0).abs() < 0.05, "{at_zero:?}");
    let flat = p50(&summary, "vxlan");
    assert_eq!(flat.verdict, Some(Verdict::Equivalent), "{flat:?}");
    // A rate has none.
    assert!(
        summary
            .laws
            .iter()
            .all(|one| one.metric.name() != "throughput")
    );
}

/// A terminal tells the laws of two workloads, and of which others there are some.
#[test]
fn workloads_whose_laws_are_left_out_are_named() {
    let workloads = ["rr", "crr", "http", "slow"].map(|name| Workload {
        name: name.to_owned(),
        ..rr()
    });
    let scene = |count| Scene {
        services: Services {
            count,
            ..Services::default()
        },
        ..Scene::of("routed")
    };
    let scenes = [10, 100, 1_000].map(|count| (scene(count), HOST));
    let (run, trials) = growing::dressed(10, &scenes, &workloads);
    let text = terminal::render(&Summary::new(&run, &trials), terminal::Style::default());
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (name, is_left_out) in [
        ("rr", false),
        ("crr", false),
        ("http", true),
        ("slow", true),
    ] {
        let title = format!("What each service costs under {name}");
        assert_eq!(words.matches(&title).count(), 1, "{text}");
        let (_, rest) = words.split_once("In the page: ").expect("what is left out");
        assert_eq!(rest.contains(&title), is_left_out, "{name}: {text}");
    }
}

#[test]
fn a_step_at_the_first_is_a_bend_and_is_named() {
    let (run, trials) = growing(10, &[("host", bent)], &LEVELS);
    let summary = Summary::new(&run, &trials);
    let bend = p50(&summary, "host").bend.clone().unwrap();
    assert_eq!(bend.shape, LawShape::Bent, "{bend:?}");
    assert!(bend.at == "2us" && bend.share > 0.1, "{bend:?}");
    let text = markdown::render(&summary);
    assert!(text.contains("above the line at planted = 2us"), "{text}");
}

#[test]
fn lines_that_cross_say_where_in_every_format() {
    let (run, trials) = growing(10, &[("host", ns_for_ns), ("vxlan", flat)], &LEVELS);
    let summary = Summary::new(&run, &trials);
    let [crossing] = p50(&summary, "host").crossings.as_slice() else {
        panic!("they cross");
    };
    assert!(
        crossing.crossing.interval.contains(10_000.0),
        "{crossing:?}"
    );
    let other = &summary.laws[crossing.with];
    assert_eq!(other.label, "vxlan");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let page = html::render(&summary, &run, &trials);
    for text in [
        terminal::render(&summary, terminal::Style::default()),
        markdown::render(&summary),
        page.clone(),
    ] {
        let text = words(&text.replace('\u{a0}', " "));
        for said in [
            "p50: host +1.0",
            "for each ns planted (95 %",
            "straight; vxlan flat (",
            "host and vxlan cross at planted =",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
    }
    assert!(page.contains("p50 by planted, one line per network"));
    assert!(!page.contains("NaN") && !page.contains("inf"));
    let report = documented::read(&json::render(&summary));
    let law = &report["laws"][0];
    assert_eq!(
        (&law["factor"], &law["treatment"]),
        (&"planted".into(), &"host".into())
    );
    assert_eq!(
        (&law["unit"], &law["metric"]),
        (&"ns".into(), &"p50".into())
    );
    assert!(law["low"].as_f64() < law["per_level"].as_f64());
    assert_eq!(law["bend"]["shape"], "straight");
    assert_eq!(law["points"][3]["treatment"], "host+32us");
    assert_eq!(law["crossings"][0]["treatment"], "vxlan");
}

#[test]
fn two_levels_make_no_law_and_few_blocks_no_interval() {
    let (run, trials) = growing(10, &[("host", ns_for_ns)], &LEVELS[..2]);
    let summary = Summary::new(&run, &trials);
    assert!(summary.laws.is_empty());
    assert!(
        documented::read(&json::render(&summary))
            .get("laws")
            .is_none()
    );
    let is_said = |summary: &Summary| {
        let text = terminal::render(summary, terminal::Style::default());
        text.contains("One more of `planted`: what it costs is not told")
    };
    assert!(is_said(&summary));
    let (run, trials) = growing(4, &[("host", ns_for_ns)], &LEVELS);
    let summary = Summary::new(&run, &trials);
    assert!(!is_said(&summary));
    let law = p50(&summary, "host");
    assert!(law.interval.is_none() && law.verdict.is_none() && law.bend.is_none());
    let text = terminal::render(&summary, terminal::Style::default());
    assert!(text.contains("too few blocks"), "{text}");
    let report = documented::read(&json::render(&summary));
    assert!(report["laws"][0]["low"].is_null() && report["laws"][0]["bend"].is_null());
}

/// A cluster's proxy has rules around none of our services as around some; the rules of a lab
/// begin with the first.
#[test]
fn none_is_a_level_where_services_are_a_clusters_own() {
    for (proxy, levels) in [
        (ServiceProxy::Own, &[0.0, 100.0, 1_000.0][..]),
        (ServiceProxy::Nftables, &[]),
    ] {
        let of = |count: u32| {
            let services = Services {
                count,
                proxy,
                position: ServicePosition::None,
                ..Services::default()
            };
            let services = if count == 0 {
                Services::default()
            } else {
                services
            };
            let scene = Scene {
                services,
                ..Scene::of("pod")
            };
            (scene, HOST + 10.0 * f64::from(count))
        };
        let (run, trials) = growing::dressed(10, &[0, 100, 1_000].map(of), &[opening()]);
        let summary = Summary::new(&run, &trials);
        let laws = summary.laws.iter();
        let mut found = laws.filter(|one| one.metric.name() == "p50");
        let shown: Vec<f64> = found.next().map_or(Vec::new(), |law| {
            law.points.iter().map(|one| one.level).collect()
        });
        assert_eq!(shown, levels);
        assert!(found.next().is_none());
    }
}

#[test]
fn pairs_that_work_at_once_make_a_law() {
    let of = |pairs: u32| {
        let scene = Scene {
            neighbours: Neighbours {
                further: pairs - 1,
                ..Neighbours::default()
            },
            ..Scene::of("routed")
        };
        (scene, HOST + 5_000.0 * f64::from(pairs))
    };
    let (run, trials) = growing::dressed(10, &[1, 2, 4, 8].map(of), &[opening()]);
    let summary = Summary::new(&run, &trials);
    let law = p50(&summary, "routed");
    let levels: Vec<f64> = law.points.iter().map(|one| one.level).collect();
    assert_eq!((law.factor, levels), ("pairs", vec![1.0, 2.0, 4.0, 8.0]));
    let each = law.line.per_level.mean;
    assert!((each / 5_000.0 - 1.0).abs() < 0.1, "{each}");
    assert_eq!(law.verdict, Some(Verdict::Worse));
    let text = markdown::render(&summary);
    for said in ["What each pair costs under crr", "for each pair (95 %"] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn a_level_without_a_valid_trial_is_left_out() {
    let (run, mut trials) = growing(10, &[("host", ns_for_ns)], &LEVELS);
    trials.retain(|trial| trial.treatment != 1);
    let summary = Summary::new(&run, &trials);
    let levels: Vec<&str> = p50(&summary, "host")
        .points
        .iter()
        .map(|one| one.shown.as_str())
        .collect();
    assert_eq!(levels, ["0s", "8us", "32us"]);
}

#[test]
fn levels_over_decades_stand_on_even_factors_and_zero_behind_a_break() {
    let (run, trials) = growing::laws();
    let summary = Summary::new(&run, &trials);
    let page = html::render(&summary, &run, &trials);
    assert!(
        page.contains(">planted, logarithmic, so"),
        "the axis says so"
    );
    for level in ["0s", "100ns", "1us", "30us"] {
        assert!(page.contains(&format!(">{level}</text>")), "{level}");
    }
    assert!(!page.contains("NaN") && !page.contains("inf"));
    assert_eq!(
        p50(&summary, "bridge").bend.as_ref().unwrap().shape,
        LawShape::Bent
    );
    assert!(
        p50(&summary, "bridge").crossings.is_empty(),
        "what is bent is not crossed"
    );
}

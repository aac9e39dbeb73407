//! The sentence that leads a report.

use plumbline_experiment::{Placement, Scene, ServiceProxy, Services, Workload};
use plumbline_record::{Run, Trial};
use plumbline_report::compare::{LimitOutcome, compare};
use plumbline_report::{Summary, html, json, markdown, terminal};

use crate::documented;
use crate::fake::growing::{HOST, dressed};
use crate::fake::{self, Fake, opening, rr};

/// A proxy, and what it adds to a request in nanoseconds, by the number of services.
type Priced = (ServiceProxy, fn(f64) -> f64);

const COUNTS: [u32; 4] = [10, 100, 1_000, 10_000];

/// No services, and then as many as there are levels by each proxy.
fn services(blocks: u32, proxies: &[Priced]) -> (Run, Vec<Trial>) {
    let mut scenes = vec![(Scene::of("routed"), HOST)];
    for (proxy, cost) in proxies {
        scenes.extend(COUNTS.map(|count| {
            let services = Services {
                count,
                proxy: *proxy,
                ..Services::default()
            };
            let scene = Scene {
                services,
                ..Scene::of("routed")
            };
            (scene, HOST + cost(f64::from(count)))
        }));
    }
    dressed(blocks, &scenes, &[opening(), rr()])
}

const TWO: [Priced; 2] = [
    (ServiceProxy::IptablesLegacy, |n| 11.0 * n),
    (ServiceProxy::Nftables, |_| 5_500.0),
];

fn answer(run: &Run, trials: &[Trial]) -> String {
    let report = documented::read(&json::render(&Summary::new(run, trials)));
    report["answer"].as_str().expect("a sentence").to_owned()
}

#[test]
fn laws_lead_where_all_that_differs_is_a_number() {
    let (run, trials) = services(10, &TWO);
    let said = answer(&run, &trials);
    assert!(said.starts_with("iptables-legacy: +1"), "{said}");
    for part in [
        " for each service on a new connection (95 % 1",
        "), nothing once it stands (same within 3.0 %); nftables: flat (at most ",
        " ns); they cross at services = ",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(said.chars().count() < 4 * 80, "{said}");
    let summary = Summary::new(&run, &trials);
    let text = terminal::render(&summary, terminal::Style::default());
    assert!(text.starts_with("iptables-legacy: +1"), "{text}");
    let page = html::render(&summary, &run, &trials);
    assert!(page.contains(r#"<p class="lead">iptables-legacy: +1"#));
}

#[test]
fn what_is_flat_is_told_together_and_alone_says_of_what() {
    let flat: fn(f64) -> f64 = |_| 5_500.0;
    let two = [
        (ServiceProxy::IptablesNft, flat),
        (ServiceProxy::Nftables, flat),
    ];
    let (run, trials) = services(10, &two);
    let said = answer(&run, &trials);
    assert!(
        said.starts_with("iptables-nft and nftables: flat (at most "),
        "{said}"
    );
    assert!(
        said.ends_with(" ns for each service)"),
        "of both moments: {said}"
    );
}

#[test]
fn a_cost_that_bends_is_not_told_as_one_for_each() {
    let bent: [Priced; 1] = [(ServiceProxy::IptablesLegacy, |n| 900.0 * n.sqrt())];
    let (run, trials) = services(10, &bent);
    let said = answer(&run, &trials);
    assert!(
        said.contains("), not evenly, nothing once it stands"),
        "{said}"
    );
}

#[test]
fn few_blocks_make_a_short_sentence() {
    let (run, trials) = services(3, &TWO);
    let said = answer(&run, &trials);
    assert_eq!(
        said,
        "The blocks are too few to say what each service costs"
    );
    let few = Fake {
        blocks: 3,
        ..fake::wide()
    };
    let (run, trials) = few.run();
    let said = answer(&run, &trials);
    assert!(
        said.ends_with("the blocks are too few to judge 17 rows"),
        "{said}"
    );
}

#[test]
fn networks_lead_where_they_differ_too() {
    let (mut run, trials) = services(10, &TWO);
    for treatment in &mut run.plan.treatments {
        if treatment.scene.services.count == COUNTS[0] {
            treatment.scene = Scene::of("vxlan");
        }
    }
    let said = answer(&run, &trials);
    assert!(said.starts_with("Against routed#0"), "{said}");
}

#[test]
fn further_workloads_are_told_in_short_with_how_many_do_not_differ() {
    let (run, trials) = Fake {
        workloads: vec![rr(), opening(), fake::stream()],
        ..Fake::new(&fake::networks())
    }
    .run();
    let said = answer(&run, &trials);
    let (_, further) = said
        .split_once("; under stream throughput is ")
        .expect("told");
    assert!(
        further.starts_with("3.") && !further.contains(';'),
        "{said}"
    );
    assert!(
        further.ends_with(" % (vxlan) lower with 5 networks, 1 the same"),
        "{said}"
    );
    let (_, further) = said
        .split_once("; under crr the median request takes ")
        .expect("told");
    let (of_crr, _) = further.split_once("; under stream ").expect("in order");
    assert!(
        of_crr.ends_with(" % (vxlan) longer with 5 networks, 1 the same"),
        "{said}"
    );
    let slow = fake::Network {
        latency: 1.3,
        ..fake::Network::same("vxlan")
    };
    let fake = Fake::new(&[fake::Network::same("host"), slow]);
    let (run, trials) = fake.run();
    let said = answer(&run, &trials);
    assert!(
        said.ends_with("; under stream vxlan is the same within 3.0 %"),
        "{said}"
    );
}

#[test]
fn where_all_differ_under_a_further_workload_they_are_not_counted() {
    let slow = |label, latency| fake::Network {
        latency,
        ..fake::Network::same(label)
    };
    let networks = [
        fake::Network::same("host"),
        slow("bridge", 1.2),
        slow("calico", 1.3),
        slow("vxlan", 1.4),
    ];
    let (run, trials) = Fake {
        workloads: vec![rr(), opening()],
        ..Fake::new(&networks)
    }
    .run();
    let said = answer(&run, &trials);
    let (_, further) = said.split_once("; under crr ").expect("told");
    assert!(further.ends_with(" % (vxlan) longer"), "{said}");
}

#[test]
fn of_many_workloads_those_of_another_metric_are_told_and_the_others_counted() {
    let named = |name: &str| Workload {
        name: name.to_owned(),
        ..rr()
    };
    let slow = |label| fake::Network {
        latency: 1.3,
        throughput: 0.7,
        ..fake::Network::same(label)
    };
    let networks = [fake::Network::same("host"), slow("vxlan"), slow("ipip")];
    let mut workloads = ["a", "b", "c", "d", "e"].map(named).to_vec();
    workloads.push(fake::stream());
    let fake = Fake {
        workloads,
        ..Fake::new(&networks)
    };
    let (run, trials) = fake.run();
    let said = answer(&run, &trials);
    let told: Vec<&str> = said.split("; ").collect();
    let [first, b, c, stream, more] = told[..] else {
        panic!("{said}");
    };
    assert!(first.starts_with("Against host, under a, "), "{said}");
    assert!(b.starts_with("under b the median request takes "), "{said}");
    assert!(c.starts_with("under c the median request takes "), "{said}");
    assert!(stream.starts_with("under stream throughput is "), "{said}");
    assert_eq!(more, "2 more workloads below", "{said}");
}

/// In each cluster another network may be the first.
#[test]
fn further_workloads_of_several_clusters_are_told() {
    let networks = ["a/host", "a/pod", "b/host", "b/pod"].map(|label| fake::Network {
        latency: if label.ends_with("pod") { 1.5 } else { 1.0 },
        throughput: if label.ends_with("pod") { 0.5 } else { 1.0 },
        ..fake::Network::same(label)
    });
    let (mut run, trials) = Fake::new(&networks).run();
    run.plan.compare_with("host").unwrap();
    let said = answer(&run, &trials);
    assert!(
        said.starts_with("Against host of the same cluster, under rr, "),
        "{said}"
    );
    assert!(said.contains("; under stream throughput is "), "{said}");
    // The first treatments under stream are those of the other cluster.
    let of_stream = |it: &plumbline_experiment::Treatment| it.task.name() == "stream";
    let first = run.plan.treatments.iter().position(of_stream).unwrap();
    for treatment in &mut run.plan.treatments[first..] {
        let (cluster, other) = match treatment.scene.network.as_str() {
            "a" => ("a", "b"),
            _ => ("b", "a"),
        };
        treatment.scene.network = other.to_owned();
        treatment.label = treatment.label.replacen(cluster, other, 1);
    }
    let said = answer(&run, &trials);
    assert!(said.contains("; under stream throughput is "), "{said}");
}

/// Which of several places of one workload is meant.
#[test]
fn workloads_of_one_name_are_told_with_their_place() {
    let networks = [
        fake::Network::same("host"),
        fake::Network {
            latency: 1.3,
            ..fake::Network::same("vxlan")
        },
    ];
    let fake = Fake {
        workloads: vec![rr(), rr()],
        ..Fake::new(&networks)
    };
    let (mut run, trials) = fake.run();
    for treatment in &mut run.plan.treatments[2..] {
        treatment.scene.placement = Placement::SameNode;
    }
    let said = answer(&run, &trials);
    assert!(said.contains(", under rr (cross-node, IPv4), "), "{said}");
    assert!(said.contains("; under rr (same-node, IPv4) "), "{said}");
}

#[test]
fn figures_lead_where_nothing_is_compared() {
    let (run, trials) = Fake::new(&[fake::Network::same("host")]).run();
    let said = answer(&run, &trials);
    assert!(said.starts_with("host: p50 27."), "{said}");
    assert!(said.ends_with(" CPU per GB"), "every workload: {said}");
    let summary = Summary::new(&run, &trials);
    let text = terminal::render(&summary, terminal::Style::default());
    assert!(text.starts_with("host: p50 27."), "{text}");
    let page = html::render(&summary, &run, &trials);
    assert!(page.contains(r#"<p class="lead">host: p50 27."#), "{page}");
    for text in [markdown::render(&summary), page] {
        assert!(!text.contains("all intervals hold together"), "{text}");
        assert!(!text.contains("is the baseline"), "{text}");
    }
    let nothing = documented::read(&json::render(&Summary::new(&run, &[])));
    assert!(nothing["answer"].is_null(), "{nothing}");
}

/// Datagrams at a held rate: host, which loses `lost_by_host` of 10,000, and networks that
/// lose these shares.
fn losing(lost_by_host: u64, networks: &[(&'static str, f64)]) -> (Run, Vec<Trial>) {
    let mut all = vec![fake::Network::same("host")];
    all.extend(networks.iter().map(|it| fake::Network::same(it.0)));
    let mut workload = rr();
    workload.name = "datagram".to_owned();
    workload.kind = plumbline_experiment::WorkloadKind::Datagram;
    let fake = Fake {
        workloads: vec![workload],
        ..Fake::new(&all)
    };
    let (run, mut trials) = fake.run();
    for trial in &mut trials {
        let lost = match trial.treatment {
            0 => lost_by_host,
            at => (networks[at - 1].1 * 10_000.0) as u64 + u64::from(trial.block),
        };
        let load = fake::load_of(trial);
        load.load.sent = 10_000;
        load.serve.datagrams = Some(plumbline_record::DatagramCounts {
            received: 10_000 - lost,
            ..Default::default()
        });
    }
    (run, trials)
}

#[test]
fn a_loss_is_told_in_percentage_points_everywhere() {
    let networks = [
        ("routed", 0.01),
        ("bridge", 0.1),
        ("ipip", 0.3),
        ("vxlan", 0.5),
        ("calico-vxlan", 0.9),
    ];
    let (run, trials) = losing(0, &networks);
    let said = answer(&run, &trials);
    assert!(
        said.starts_with(
            "Against host loss is 1.0 pp higher with routed, 10 pp with bridge, 30 pp with ipip, \
             50 pp with vxlan and 90 pp with calico-vxlan"
        ),
        "{said}"
    );
    let summary = Summary::new(&run, &trials);
    let effect = summary.comparison(4, "loss").unwrap().effect.unwrap();
    assert!((effect.ratio_minus_one - 1.0).abs() < 0.01, "{effect:?}");
    let wide = terminal::Style {
        width: 400,
        ..terminal::Style::default()
    };
    for (format, text) in [
        ("terminal", terminal::render(&summary, wide)),
        ("markdown", markdown::render(&summary)),
        ("html", html::render(&summary, &run, &trials)),
    ] {
        let text = text.replace('\u{a0}', " ");
        assert!(text.contains("+50 pp"), "{format}: {text}");
        assert!(text.contains("percentage points"), "{format}: {text}");
        for wrong in ["+100 %", "+900 %", "920 %", "pp %"] {
            assert!(!text.contains(wrong), "{format}, {wrong}: {text}");
        }
    }
    let text = markdown::render(&summary);
    assert!(text.contains("**vxlan** costs +50 pp loss"), "{text}");
    assert!(text.contains("| 50 to 50 pp |"), "{text}");
}

#[test]
fn a_loss_beside_a_baseline_that_loses_too_is_the_difference_of_both() {
    let (run, trials) = losing(5_000, &[("vxlan", 0.75)]);
    let said = answer(&run, &trials);
    assert!(said.contains("loss is 25 pp higher with vxlan"), "{said}");
    let (run, trials) = losing(5_000, &[("vxlan", 0.0)]);
    let said = answer(&run, &trials);
    assert!(said.contains("loss is 50 pp lower with vxlan"), "{said}");
}

#[test]
fn a_limit_of_loss_is_in_percentage_points() {
    let (mut run, trials) = losing(0, &[("vxlan", 0.5)]);
    for (limit, outcome) in [(0.49, LimitOutcome::Broken), (0.51, LimitOutcome::Held)] {
        run.plan.limits = [("loss".to_owned(), limit)].into();
        let compared = compare(&[(run.clone(), trials.clone())], false).unwrap();
        assert_eq!(compared.limits[0].outcome, outcome, "{:?}", compared.limits);
        let text = plumbline_report::compare::render(&compared, terminal::Style::default());
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("loss overhead +50 pp"), "{text}");
        assert!(text.contains(" pp), allowed "), "{text}");
    }
}

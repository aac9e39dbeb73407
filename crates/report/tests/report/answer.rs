//! The sentence that leads a report.

use plumbline_experiment::{Scene, ServiceProxy, Services};
use plumbline_record::{Run, Trial};
use plumbline_report::{Summary, html, json, terminal};

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

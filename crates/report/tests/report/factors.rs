//! Every factor of a scene is in every output: what a figure depends on stands
//! beside it.

use plumbline_experiment::{
    Enforcer, FACTORS, Family, NeighbourKind, Neighbours, Placement, Policies, PolicyDirection,
    PolicyPeers, PolicyPosition, Scene, Selected, ServicePosition, ServiceProxy, Services,
    SharedPart, Tuning, Variant,
};
use plumbline_report::{Summary, csv, html, json, markdown, terminal};

use crate::documented;
use crate::fake::{Fake, Network};

/// A scene with a level of every factor that is not the default.
fn departed() -> Scene {
    let tuning = Tuning {
        gro: Some(false),
        ..Tuning::default()
    };
    let name = "no-gro".to_owned();
    Scene {
        variant: Some(Variant { name, tuning }),
        backends: 3,
        planted_ns: 2_000,
        placement: Placement::SameNode,
        family: Family::V6,
        services: Services {
            count: 100,
            endpoints: 3,
            proxy: ServiceProxy::Nftables,
            position: ServicePosition::First,
        },
        policies: Policies {
            count: 40,
            position: PolicyPosition::Middle,
            selects: Selected::Others,
            members: 7,
            peers: PolicyPeers::Addresses,
            direction: PolicyDirection::Both,
            enforcer: Enforcer::KubeRouter,
        },
        neighbours: Neighbours {
            kind: NeighbourKind::Bulk,
            share: SharedPart::Link,
            further: 2,
        },
        ..Scene::of("calico").by("cluster-ip")
    }
}

#[test]
fn every_factor_is_in_every_output() {
    let scene = departed();
    let (mut run, trials) = Fake::new(&[Network::same("host"), Network::same("vxlan")]).run();
    for treatment in &mut run.plan.treatments {
        treatment.scene = scene.clone();
        // A label holds the name of the network under test.
        treatment.label = format!("{}#{}", scene.name(), treatment.id);
    }
    let summary = Summary::new(&run, &trials);
    let csv = csv::render(&summary);
    let json: serde_json::Value = documented::read(&json::render(&summary));
    let texts = [
        (
            "terminal",
            terminal::render(&summary, terminal::Style::default()),
        ),
        ("markdown", markdown::render(&summary)),
        ("html", html::render(&summary, &run, &trials)),
    ];
    for factor in FACTORS {
        let level = factor.departs(&scene);
        let level = level.unwrap_or_else(|| panic!("add a level of {} above", factor.name));
        assert!(
            csv.lines()
                .next()
                .unwrap()
                .split(',')
                .any(|it| it == factor.name)
        );
        assert!(csv.lines().nth(1).unwrap().split(',').any(|it| it == level));
        let of_json = &json["treatments"][0]["factors"][factor.name];
        let of_json = of_json
            .as_str()
            .map_or_else(|| of_json.to_string(), str::to_owned);
        assert_eq!(of_json, level, "{}", factor.name);
        let shown = (factor.heading)(&scene).unwrap_or_else(|| (factor.level)(&scene));
        for (format, text) in &texts {
            assert!(
                text.contains(&shown),
                "{format}: no {} `{shown}`",
                factor.name
            );
        }
    }
}

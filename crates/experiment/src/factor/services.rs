//! The factors of services.

use super::label::{counted, said};
use super::row::{Factor, LevelSyntax};
use crate::ceiling::{MAX_ENDPOINTS, MAX_SERVICES};
use crate::{Scene, ServicePosition, ServiceProxy, Services, section};

pub(super) const SERVICES: Factor = Factor {
    name: "services",
    help: "Services whose rules stand on the nodes, such as 0,100,10000",
    value_name: "NUMBERS",
    of: None,
    reading: LevelSyntax::Level(|written, scene| {
        scene.services.count = section::whole("services", written.0, &(0..=MAX_SERVICES))?;
        Ok(())
    }),
    level: |scene| scene.services.count.to_string(),
    label: services_in_words,
    heading: |scene| said(services_in_words(scene)),
    number: |scene| Some(scene.services.count.into()),
    one: "service",
};

pub(super) const ENDPOINTS: Factor = Factor {
    name: "endpoints",
    help: "Endpoints of each service; all are the one receiver",
    value_name: "NUMBERS",
    of: Some("services"),
    reading: LevelSyntax::Level(|written, scene| {
        let bounds = 1..=MAX_ENDPOINTS;
        scene.services.endpoints = section::whole("endpoints", written.0, &bounds)?;
        Ok(())
    }),
    level: |scene| scene.services.endpoints.to_string(),
    label: |scene| in_services(scene, |it| counted(it.endpoints, "endpoint")),
    heading: |scene| {
        let endpoints = scene.services.endpoints;
        (endpoints > 1).then(|| format!("{endpoints} endpoints"))
    },
    number: |scene| Some(scene.services.endpoints.into()),
    one: "endpoint",
};

pub(super) const PROXY: Factor = Factor {
    name: "proxy",
    help: "Who serves services: own for what the network has, iptables-legacy, iptables-nft, \
           nftables, ipvs, userspace, ebpf, ebpf-socket",
    value_name: "NAMES",
    of: Some("services"),
    reading: LevelSyntax::Level(|written, scene| {
        scene.services.proxy = written.word("proxy", ServiceProxy::ALL, ServiceProxy::as_str)?;
        Ok(())
    }),
    level: |scene| in_services(scene, |it| it.proxy.as_str().to_owned()),
    label: named_proxy,
    heading: |scene| said(named_proxy(scene)),
    number: |_| None,
    one: "",
};

pub(super) const POSITION: Factor = Factor {
    name: "position",
    help: "Which service is asked: first, p01, middle, p90, p99, last, or none for the receiver \
           itself",
    value_name: "WHERE",
    of: Some("services"),
    reading: LevelSyntax::Level(|written, scene| {
        scene.services.position =
            written.word("position", ServicePosition::ALL, ServicePosition::as_str)?;
        Ok(())
    }),
    level: |scene| in_services(scene, |it| it.position.as_str().to_owned()),
    label: |scene| in_services(scene, |it| it.position.as_str().to_owned()),
    heading: |scene| {
        said(in_services(scene, |it| {
            format!("{} asked", it.position.as_str())
        }))
    },
    number: |_| None,
    one: "",
};

/// What is said of a scene's services; empty where there are none.
fn in_services(scene: &Scene, say: impl Fn(&Services) -> String) -> String {
    match scene.services.is_none() {
        true => String::new(),
        false => say(&scene.services),
    }
}

/// Whose the services are, unless that is said with the network.
fn named_proxy(scene: &Scene) -> String {
    in_services(scene, |it| match it.proxy {
        ServiceProxy::Own => String::new(),
        named => named.as_str().to_owned(),
    })
}

fn services_in_words(scene: &Scene) -> String {
    in_services(scene, |it| counted(it.count, "service"))
}

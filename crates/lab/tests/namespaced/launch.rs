//! Pods that are launched on networks that stand.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path as FilePath, PathBuf};
use std::sync::atomic::AtomicBool;

use plumbline_experiment::{Family, Launch, Placement};
use plumbline_harness::{Path, TargetError};
use plumbline_lab::{Catalogue, LabError, Launcher, PathSpec, StandingNetwork, catalogue, network};
use plumbline_record::{LaunchObservation, PodLaunch};
use plumbline_testkit as testkit;

fn build(
    network: &str,
    family: Family,
    directories: Vec<PathBuf>,
) -> Result<StandingNetwork, LabError> {
    let spec = PathSpec {
        network: network.into(),
        placement: Placement::CrossNode,
        family,
        mtu: 1500,
    };
    let launcher = Launcher::new("unused".into(), Vec::new());
    spec.validate(&Catalogue::new(directories))?
        .build(&launcher)
}

/// The network as it stands; `None`, counted as a skip, where this machine lacks it.
fn standing(test: &str, network: &str, directories: Vec<PathBuf>) -> Option<StandingNetwork> {
    if !testkit::in_private_namespaces(test) {
        return None;
    }
    match build(network, Family::V4, directories) {
        Err(LabError::Unsupported { needs, .. }) => {
            testkit::skip(test, &needs);
            None
        }
        built => Some(built.expect("stands")),
    }
}

fn launch(
    standing: &StandingNetwork,
    pods: u32,
    rate: Option<f64>,
) -> Result<LaunchObservation, TargetError> {
    let launch = Launch {
        name: "launch".to_owned(),
        pods,
        rate,
    };
    let never = AtomicBool::new(false);
    let launcher = Path::launch(standing, &launch, &never)?;
    launcher()
}

/// The devices of all nodes.
fn devices(standing: &StandingNetwork) -> Vec<String> {
    let nodes = &standing.topology().nodes;
    let links = nodes.iter().map(|node| node.netlink().links());
    let links = links.flat_map(|links| links.expect("listed"));
    links.map(|link| link.name).collect()
}

/// The whole life of a pod was seen, in order.
fn is_whole(pod: &PodLaunch) {
    assert_eq!(pod.error, None);
    let ends = [
        pod.namespace_ns,
        pod.attached_ns(),
        pod.probed_ns,
        pod.up_ns(),
    ];
    let ends: Vec<u64> = ends.into_iter().flatten().collect();
    assert_eq!(ends.len(), 4, "{pod:?}");
    assert!(pod.begun_ns <= ends[0] && ends.is_sorted(), "{pod:?}");
    assert_eq!(
        pod.parts().last().map(|it| it.to_ns),
        pod.up_ns(),
        "{pod:?}"
    );
    let release = pod.release.as_ref().expect("it ended");
    assert!(Some(release.begun_ns) <= release.ended_ns, "{release:?}");
    assert!(!release.steps.is_empty(), "{release:?}");
}

/// Launches pods one by one and at once, again and again, and nothing is left of them.
fn hold(standing: &StandingNetwork) {
    let before = devices(standing);
    for (pods, rate) in [(1, None), (5, Some(100.0)), (5, None)] {
        let seen = launch(standing, pods, rate).expect("launched");
        assert_eq!(seen.pods.len(), pods as usize);
        seen.pods.iter().for_each(is_whole);
        let nodes: Vec<&str> = seen.pods.iter().map(|it| it.node.as_str()).collect();
        let in_turn = ["node1", "node2", "node1", "node2", "node1"];
        assert_eq!(nodes, in_turn[..pods as usize]);
    }
    assert_eq!(devices(standing), before);
}

fn every_network(test: &str, family: Family) {
    if !testkit::in_private_namespaces(test) {
        return;
    }
    for name in catalogue::names() {
        let mut standing = match build(name, family, Vec::new()) {
            // What this kernel lacks is counted where each network conforms; all have this.
            Err(LabError::Unsupported { .. } | LabError::Family { .. }) if name != "routed" => {
                continue;
            }
            built => built.expect("stands"),
        };
        if catalogue::find(name).expect("known").takes_pods() {
            hold(&standing);
        } else {
            let refused = launch(&standing, 1, None);
            let is_refused = matches!(refused, Err(TargetError::Unsupported { .. }));
            assert!(is_refused, "{name}: {refused:?}");
        }
        let errors = standing.take_down();
        assert!(errors.is_empty(), "{name}: {errors:?}");
    }
}

#[test]
fn every_network_takes_pods_or_says_that_it_takes_none() {
    every_network("launch on every network", Family::V4);
}

#[test]
fn pods_of_ipv6_are_launched_too() {
    every_network("launch on every network of IPv6", Family::V6);
}

#[test]
fn a_hundred_pods_at_once_have_their_network() {
    let test = "a hundred pods at once";
    let Some(standing) = standing(test, "routed", Vec::new()) else {
        return;
    };
    let seen = launch(&standing, 100, None).expect("launched");
    assert!(seen.up() >= 99, "{} of 100", seen.up());
}

/// A list of Debian's plugins, in a directory of a test.
fn list(directory: &FilePath, change: impl FnOnce(String) -> String) -> String {
    let text = include_str!("../../../../docs/cni/ptp.conflist");
    let file = directory.join("ptp.conflist");
    fs::write(&file, change(text.to_owned())).expect("written");
    format!("cni:{}", file.display())
}

#[test]
fn each_plugin_of_a_list_is_a_step() {
    let directory = tempfile::tempdir().expect("a directory");
    let name = list(directory.path(), |text| text);
    let directories = network::cni::default_directories();
    let test = "launch on a list of plugins";
    let Some(standing) = standing(test, &name, directories) else {
        return;
    };
    hold(&standing);
    let seen = launch(&standing, 2, None).expect("launched");
    for pod in &seen.pods {
        let steps: Vec<&str> = pod.steps.iter().map(|it| it.step.as_str()).collect();
        assert_eq!(steps, ["ptp"], "{pod:?}");
    }
}

/// Passes on what the plugin before it made, once it has done `{this}`.
const LAST: &str = r#"#!/bin/sh
case "$CNI_COMMAND" in
VERSION) echo '{"cniVersion": "1.0.0", "supportedVersions": ["1.0.0"]}' ;;
ADD) {this}; sed 's/,"type":"last"}$/}/; s/.*"prevResult"://; s/}$//' ;;
esac
"#;

/// A list that ends with that plugin, as it stands; `None` as for [`standing`].
fn standing_before(test: &str, directory: &FilePath, this: &str) -> Option<StandingNetwork> {
    let plugin = directory.join("last");
    fs::write(&plugin, LAST.replace("{this}", this)).expect("written");
    fs::set_permissions(&plugin, fs::Permissions::from_mode(0o755)).expect("executable");
    let name = list(directory, |text| {
        let last = "    }\n  ]";
        assert!(text.contains(last), "{text}");
        text.replace(last, "    },\n    { \"type\": \"last\" }\n  ]")
    });
    let mut directories = network::cni::default_directories();
    directories.push(directory.to_owned());
    standing(test, &name, directories)
}

/// In the dates of its step and of all that this is part of, and in no others.
#[test]
fn what_a_plugin_takes_is_where_it_belongs() {
    const SLEEP_NS: u64 = 200_000_000;
    let directory = tempfile::tempdir().expect("a directory");
    let test = "launch on a list that is slow";
    let Some(standing) = standing_before(test, directory.path(), "sleep 0.2") else {
        return;
    };
    let seen = launch(&standing, 5, Some(5.0)).expect("launched");
    for pod in &seen.pods {
        is_whole(pod);
        let [first, last] = &pod.steps[..] else {
            panic!("{pod:?}");
        };
        let took_ns = last.ended_ns - first.ended_ns;
        assert!(took_ns >= SLEEP_NS, "{pod:?}");
        assert!(pod.attach_ns() >= Some(took_ns), "{pod:?}");
        assert!(pod.up_ns() >= pod.attach_ns(), "{pod:?}");
        assert!(pod.probed_ns >= Some(last.ended_ns), "{pod:?}");
    }
    // Not of each: a kernel may notice late that a device carries.
    let first_packets = seen.pods.iter().filter_map(PodLaunch::first_packets_ns);
    assert!(first_packets.min() < Some(SLEEP_NS), "{seen:?}");
}

#[test]
fn a_pod_that_a_plugin_refuses_has_no_network_and_the_others_do() {
    const FULL: &str = "[ $CNI_CONTAINERID != plumbline-pod101 ] || \
                        { echo '{\"code\": 11, \"msg\": \"it is full\"}'; exit 1; }";
    let directory = tempfile::tempdir().expect("a directory");
    let test = "launch on a list that is full";
    let Some(standing) = standing_before(test, directory.path(), FULL) else {
        return;
    };
    let seen = launch(&standing, 3, None).expect("launched");
    let [first, second, third] = &seen.pods[..] else {
        panic!("{seen:?}");
    };
    is_whole(first);
    is_whole(third);
    let error = second.error.as_deref().expect("refused");
    assert!(error.contains("it is full (CNI error 11)"), "{error}");
    assert_eq!((second.up_ns(), &second.release), (None, &None));
    let steps: Vec<&str> = first.steps.iter().map(|it| it.step.as_str()).collect();
    assert_eq!(steps, ["ptp", "last"]);
}

//! Paths are made anew between blocks, as a clock of the test says.

use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use plumbline_experiment::{Asked, Experiment, Family, Placement, Scene, Treatment};
use plumbline_harness::{Demand, Target};
use plumbline_lab::{Lab, LabOptions, UPLINK};
use plumbline_sys::netlink::LinkSpec;
use plumbline_testkit as testkit;

/// Moves on by 1 whenever it is read, so that making paths takes 1.
static CLOCK: AtomicU64 = AtomicU64::new(0);

fn clock() -> u64 {
    CLOCK.fetch_add(1, Ordering::Relaxed)
}

/// Later than paths may stand.
fn long_after() {
    CLOCK.fetch_add(1_000, Ordering::Relaxed);
}

/// A clock that stands still makes everything due at once.
fn still() -> u64 {
    0
}

/// Its agents say in which namespace they are, and end.
fn lab(clock: fn() -> u64, cni_directory: &Path) -> Lab {
    let options = LabOptions {
        agent: "/bin/readlink".into(),
        agent_arguments: vec!["/proc/self/ns/net".into()],
        mtu: 1500,
        cni_directories: vec![cni_directory.to_owned()],
        awake: false,
    };
    Lab::new(options).with_clock(clock)
}

fn treatments(baseline: &str, networks: &str) -> Vec<Treatment> {
    let text = format!(
        "name = \"anew\"\nquestion = \"?\"\nbaseline = \"{baseline}\"\n\
         [factors]\nnetwork = {networks}\n[[workload]]\nkind = \"rr\"\nrate = 1000\n"
    );
    let experiment = Experiment::parse(&text, "anew").expect("valid");
    let known = |asked: &Asked<'_>| Ok(vec![Scene::of(asked.network.name().expect("named"))]);
    let draft = experiment.draft(1, &known).expect("resolved");
    draft.plan.treatments
}

fn prepare(lab: &mut Lab, treatments: &[Treatment]) {
    let demand = Demand {
        treatments,
        first: &[],
        link: plumbline_experiment::Link::default(),
    };
    lab.prepare(&demand).expect("built");
}

/// The namespace of a treatment's client.
fn namespace(lab: &Lab, treatment: &Treatment) -> String {
    let path = lab.stage(treatment, [0, 1]).expect("stands");
    let mut agent = path.client().start_agent().expect("started");
    let mut text = String::new();
    agent.output.read_to_string(&mut text).expect("read");
    text
}

/// The devices of the first node of `host-gw` but for what every namespace has.
fn devices(lab: &mut Lab) -> Vec<String> {
    let standing = lab.stand("host-gw", Placement::CrossNode, Family::V4);
    let node = &standing.expect("stands").topology().nodes[0];
    let links = node.netlink().links().expect("links");
    let names = links.into_iter().map(|link| link.name);
    names
        .filter(|name| !["lo", UPLINK].contains(&&**name))
        .collect()
}

fn add_device(lab: &mut Lab) {
    let standing = lab.stand("host-gw", Placement::CrossNode, Family::V4);
    let node = &standing.expect("stands").topology().nodes[0];
    let added = node.netlink().add_link(LinkSpec::bridge("mark"));
    added.expect("added");
}

#[test]
fn a_network_its_copy_and_what_is_planted_each_have_a_path() {
    if !testkit::in_private_namespaces("each copy has a path") {
        return;
    }
    let mut lab = lab(still, Path::new("/no/such/directory"));
    let copies = treatments("host-gw", r#"["host-gw", "host-gw"]"#);
    let planted = treatments("host-gw", r#"["host-gw", "host-gw+2us"]"#);
    let all = [&copies[0], &copies[1], &planted[1]];
    prepare(&mut lab, &copies);
    prepare(&mut lab, &planted);
    let mut namespaces = all.map(|one| namespace(&lab, one));
    assert_eq!(
        namespaces[0],
        namespace(&lab, &planted[0]),
        "the same scene"
    );
    namespaces.sort();
    assert!(
        namespaces.windows(2).all(|two| two[0] != two[1]),
        "{namespaces:?}"
    );
    assert!(lab.teardown().is_empty());
}

#[test]
fn paths_are_made_anew_once_they_have_stood_long_enough() {
    if !testkit::in_private_namespaces("paths are made anew") {
        return;
    }
    let mut lab = lab(clock, Path::new("/no/such/directory"));
    let treatments = treatments("host-gw", r#"["host-gw", "vxlan"]"#);
    prepare(&mut lab, &treatments);
    let new = devices(&mut lab);
    add_device(&mut lab);
    lab.begin_block(0);
    assert_ne!(devices(&mut lab), new, "too early");
    long_after();
    lab.begin_block(1);
    assert_eq!(devices(&mut lab), new);
    for treatment in &treatments {
        lab.ready(treatment, &[0, 1]).expect("ready");
        namespace(&lab, treatment);
    }
    assert!(lab.teardown().is_empty());
}

#[test]
fn what_cannot_be_undone_between_blocks_is_told_in_the_end() {
    if !testkit::in_private_namespaces("errors between blocks are told in the end") {
        return;
    }
    let mut lab = lab(still, Path::new("/no/such/directory"));
    let treatments = treatments("vxlan", r#"["vxlan"]"#);
    prepare(&mut lab, &treatments);
    let standing = lab.stand("vxlan", Placement::CrossNode, Family::V4);
    let node = &standing.expect("stands").topology().nodes[0];
    // Somebody deletes a device from outside, and all that hangs on it.
    node.netlink().delete_link("flannel.1").expect("deleted");
    lab.begin_block(0);
    namespace(&lab, &treatments[0]);
    let errors = lab.teardown();
    assert!(errors.len() >= 2, "{errors:?}");
    let is_of_node = |error: &plumbline_harness::TargetError| error.to_string().contains("node1");
    assert!(errors.iter().all(is_of_node), "{errors:?}");
    assert!(lab.teardown().is_empty(), "told once");
}

#[test]
fn a_path_that_cannot_be_made_again_says_why_until_it_can() {
    const TEST: &str = "a path that cannot be made again says why";
    if !testkit::in_private_namespaces(TEST) {
        return;
    }
    let real = Path::new("/usr/lib/cni");
    if !real.join("ptp").exists() {
        return testkit::skip(
            TEST,
            "Debian's containernetworking-plugins is not installed",
        );
    }
    let directory = tempfile::tempdir().expect("a directory");
    for plugin in ["ptp", "host-local"] {
        symlink(real.join(plugin), directory.path().join(plugin)).expect("linked");
    }
    let list = directory.path().join("ptp.conflist");
    fs::write(&list, include_str!("../../../../docs/cni/ptp.conflist")).expect("written");
    let network = format!("cni:{}", list.display());
    let treatments = treatments(&network, &format!("[\"{network}\"]"));
    let mut lab = lab(still, directory.path());
    prepare(&mut lab, &treatments);

    let (plugin, away) = (directory.path().join("ptp"), directory.path().join("away"));
    fs::rename(&plugin, &away).expect("renamed");
    lab.begin_block(0);
    let error = lab.ready(&treatments[0], &[0, 1]).expect_err("not there");
    assert!(error.to_string().contains("`ptp`"), "{error}");
    assert!(lab.stage(&treatments[0], [0, 1]).is_err());

    fs::rename(&away, &plugin).expect("renamed");
    lab.ready(&treatments[0], &[0, 1]).expect("there again");
    namespace(&lab, &treatments[0]);
    // Without its program the first path was not taken down as it should be.
    assert!(!lab.teardown().is_empty());
}

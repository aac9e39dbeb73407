//! `cni:FILE` with Debian's plugins, and with plugins that go wrong.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use plumbline_experiment::{Family, Placement};
use plumbline_lab::{Catalogue, Journal, LabError, PathSpec, Topology, network};
use plumbline_testkit as testkit;

use crate::{conformance, eye};

/// Holds a list of the documentation to what every network has to do. It is part
/// of the test program, which also runs where the sources cannot be read.
fn conform(name: &str, list: &str, placement: Placement, family: Family) {
    let test = format!("cni {name} {placement:?} {family:?}");
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join(format!("{name}.conflist"));
    fs::write(&file, list).expect("written");
    let network = format!("cni:{}", file.display());
    conformance::hold(&test, &network, placement, family);
}

macro_rules! lists {
    ($($name:ident)*) => {
        $(mod $name {
            use super::*;

            const NAME: &str = stringify!($name);
            const LIST: &str = include_str!(concat!(
                "../../../../docs/cni/",
                stringify!($name),
                ".conflist"
            ));

            #[test]
            fn cross_node_v4() {
                conform(NAME, LIST, Placement::CrossNode, Family::V4);
            }

            #[test]
            fn cross_node_v6() {
                conform(NAME, LIST, Placement::CrossNode, Family::V6);
            }

            #[test]
            fn same_node_v4() {
                conform(NAME, LIST, Placement::SameNode, Family::V4);
            }
        })*
    };
}

lists! { ptp bridge portmap macvlan ipvlan }

/// Plugins of a test, and the list that names them.
struct Workshop {
    directory: tempfile::TempDir,
}

/// Speaks 1.0.0, and writes down each call.
const GOOD: &str = r#"
echo "$CNI_COMMAND $(basename "$0") $CNI_CONTAINERID" >>"$(dirname "$0")/calls"
case $CNI_COMMAND in
VERSION) echo '{"cniVersion": "1.0.0", "supportedVersions": ["1.0.0"]}'; exit ;;
CHECK | DEL) exit ;;
esac
"#;
/// Makes what no DEL takes away.
const MAKES_DEVICES: &str = "ip link add left0 type veth peer name left1\n\
     echo '{\"cniVersion\": \"1.0.0\", \"ips\": [{\"address\": \"198.19.1.9/24\"}]}'";

impl Workshop {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        Self { directory }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn plugin(&self, name: &str, script: &str) {
        let path = self.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&path, mode).expect("executable");
    }

    fn list(&self, version: &str, plugins: &[&str]) -> String {
        let plugins: Vec<_> = plugins
            .iter()
            .map(|kind| serde_json::json!({ "type": kind }))
            .collect();
        let list = serde_json::json!({
            "cniVersion": version, "name": "lab", "plugins": plugins,
        });
        let file = self.path().join("lab.conflist");
        fs::write(&file, list.to_string()).expect("written");
        format!("cni:{}", file.display())
    }

    fn calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.path().join("calls")).unwrap_or_default();
        calls.lines().map(str::to_owned).collect()
    }
}

fn validate(name: &str, directories: &[PathBuf]) -> Result<plumbline_lab::Validated, LabError> {
    let spec = PathSpec {
        network: name.into(),
        placement: Placement::SameNode,
        family: Family::V4,
        mtu: 1500,
    };
    spec.validate(&Catalogue::new(directories.to_vec()))
}

fn attach(network: &dyn network::Network, topology: &Topology) -> String {
    let mut journal = Journal::default();
    let attached = network.attach(topology, &mut journal);
    attached.err().expect("refused").to_string()
    // Dropping the journal undoes what is in it, as a lab does.
}

#[test]
fn the_record_tells_the_list_and_which_programs_its_plugins_are() {
    if !testkit::in_private_namespaces("the programs of plugins") {
        return;
    }
    let workshop = Workshop::new();
    let says = "[ -n \"$CNI_COMMAND\" ] || echo 'CNI first plugin v1.2.3' >&2";
    workshop.plugin("first", &format!("{says}\n{GOOD}"));
    workshop.plugin("giver", "exit 1");
    let file = workshop.path().join("lab.conflist");
    let text = r#"{"cniVersion": "1.0.0", "name": "lab",
        "plugins": [{"type": "first", "mtu": {{.MTU}}, "ipam": {"type": "giver"}}]}"#;
    fs::write(&file, text).expect("written");
    let name = format!("cni:{}", file.display());
    let validated = validate(&name, &[workshop.path().to_owned()]).expect("valid");
    let list = validated.network.list().expect("read").expect("a list");
    assert_eq!(list.text, text);
    let programs: Vec<_> = list
        .plugins
        .iter()
        .map(|one| (one.kind.as_str(), one.version.as_deref()))
        .collect();
    assert_eq!(programs, [("first", Some("v1.2.3")), ("giver", None)]);
    // By coreutils' sha256sum.
    let giver = "#!/bin/sh\nexit 1\n";
    assert_eq!(
        fs::read_to_string(workshop.path().join("giver")).unwrap(),
        giver
    );
    assert_eq!(
        list.plugins[1].sha256,
        "275239824e00e61b0a220e61a41791c7e9b4bd726f8b0c27077a338f8131c9dc"
    );
}

/// Attaches by a good plugin and then by `script`, which goes wrong at ADD;
/// gives the error. All must be undone, and both plugins told to detach.
fn goes_wrong(test: &str, script: &str) -> Option<String> {
    if !testkit::in_private_namespaces(test) {
        return None;
    }
    let workshop = Workshop::new();
    workshop.plugin("maker", &format!("{GOOD}{MAKES_DEVICES}"));
    workshop.plugin("broken", &format!("{GOOD}{script}"));
    let name = workshop.list("1.0.0", &["maker", "broken"]);
    let directories = [workshop.path().to_owned()];
    let validated = validate(&name, &directories).expect("both are there and speak 1.0.0");
    let topology = validated.topology().expect("topology");
    let before = eye::state(&topology);
    let error = attach(validated.network, &topology);

    if let (Some(before), Some(after)) = (before, eye::state(&topology)) {
        eye::assert_same(&before, &after);
    }
    let expected = [
        "VERSION maker ",
        "VERSION broken ",
        "ADD maker plumbline-pod1",
        "ADD broken plumbline-pod1",
        "DEL broken plumbline-pod1",
        "DEL maker plumbline-pod1",
    ];
    assert_eq!(workshop.calls(), expected);
    Some(error)
}

#[track_caller]
fn assert_says(error: Option<String>, parts: &[&str]) {
    for part in parts {
        let Some(error) = &error else { return };
        assert!(error.contains(part), "{part:?} is not in: {error}");
    }
}

#[test]
fn a_plugin_that_fails_without_a_word() {
    let error = goes_wrong(
        "a plugin that fails without a word",
        "echo wrong >&2; exit 3",
    );
    let parts = [
        "ADD of the CNI plugin `broken` for pod1",
        "exit status: 3",
        ": wrong",
    ];
    assert_says(error, &parts);
}

#[test]
fn a_plugin_that_refuses() {
    let script = r#"echo '{"cniVersion": "1.0.0", "code": 7, "msg": "no key `master`", "details": "add it"}'
        exit 1"#;
    let error = goes_wrong("a plugin that refuses", script);
    assert_says(error, &["no key `master`: add it (CNI error 7)"]);
}

#[test]
fn a_plugin_that_answers_nonsense() {
    let error = goes_wrong("a plugin that answers nonsense", "echo all is well");
    assert_says(
        error,
        &["the answer is not understood", "it answered `all is well"],
    );
}

#[test]
fn a_plugin_that_answers_in_another_version() {
    let script = r#"echo '{"cniVersion": "0.3.1"}'"#;
    let error = goes_wrong("a plugin that answers in another version", script);
    assert_says(
        error,
        &["\"0.3.1\" was given where \"1.0.0\" was asked for"],
    );
}

#[test]
fn a_plugin_that_hangs() {
    let error = goes_wrong("a plugin that hangs", "sleep 60 & sleep 60");
    assert_says(error, &["no answer within 10 s", "was killed"]);
}

/// What it starts holds its streams: as one of its own group, or out of reach.
#[test]
fn a_plugin_that_fails_and_leaves_a_child() {
    for leaves in ["sleep 1000 &", "setsid sleep 30 &"] {
        let script = format!("{leaves} echo wrong >&2; exit 3");
        let error = goes_wrong("a plugin that leaves a child", &script);
        assert_says(error, &["exit status: 3", ": wrong"]);
    }
}

/// As root its leases would be among those of the machine's own pods.
#[test]
fn what_host_local_writes_stays_in_the_run() {
    let test = "what host-local writes";
    if !testkit::in_private_namespaces(test) {
        return;
    }
    let workshop = Workshop::new();
    let store = workshop.path().join("store");
    let kind = r#""type": "host-local","#;
    let with_store = format!("{kind} \"dataDir\": \"{}\",", store.display());
    let list = include_str!("../../../../docs/cni/ptp.conflist");
    assert!(list.contains(kind), "{list}");
    let file = workshop.path().join("lab.conflist");
    fs::write(&file, list.replace(kind, &with_store)).expect("written");
    let name = format!("cni:{}", file.display());
    let validated = match validate(&name, &network::cni::default_directories()) {
        Err(LabError::Unsupported { needs, .. }) => return testkit::skip(test, &needs),
        other => other.expect("valid"),
    };
    let topology = validated.topology().expect("topology");
    let mut journal = Journal::default();
    let attached = validated.network.attach(&topology, &mut journal);
    attached.expect("attached");
    assert!(!store.exists(), "it wrote to the machine's own file system");
}

#[test]
fn a_pod_without_an_address() {
    let script = r#"echo '{"cniVersion": "1.0.0", "ips": []}'"#;
    if !testkit::in_private_namespaces("a pod without an address") {
        return;
    }
    let workshop = Workshop::new();
    workshop.plugin("poor", &format!("{GOOD}{script}"));
    let name = workshop.list("1.0.0", &["poor"]);
    let directories = [workshop.path().to_owned()];
    let validated = validate(&name, &directories).expect("valid");
    let topology = validated.topology().expect("topology");
    let error = attach(validated.network, &topology);
    assert!(error.contains("gave pod1 no IPv4 address"), "{error}");
    let calls = workshop.calls();
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    let pod = "poor plumbline-pod1";
    let expected = ["ADD", "CHECK", "DEL"].map(|it| format!("{it} {pod}"));
    assert_eq!(calls[1..], expected);
}

#[test]
fn a_plugin_of_another_version_is_refused_before_anything_is_made() {
    if !testkit::in_private_namespaces("a plugin of another version") {
        return;
    }
    let workshop = Workshop::new();
    workshop.plugin("old", GOOD);
    let name = workshop.list("1.1.0", &["old"]);
    let directories = [workshop.path().to_owned()];
    let error = validate(&name, &directories).err().expect("refused");
    let expected = "the CNI plugin `old` speaks 1.0.0, not `1.1.0`, which the list asks for";
    assert!(error.to_string().starts_with(expected), "{error}");
    assert_eq!(workshop.calls(), ["VERSION old "]);
}

#[test]
fn a_plugin_that_is_not_there_is_unsupported() {
    if !testkit::in_private_namespaces("a plugin that is not there") {
        return;
    }
    let workshop = Workshop::new();
    let name = workshop.list("1.0.0", &["nowhere"]);
    let directories = [workshop.path().to_owned()];
    let error = validate(&name, &directories).err().expect("refused");
    assert!(matches!(error, LabError::Unsupported { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("needs the CNI plugin `nowhere`"), "{text}");
    assert!(text.contains("--cni-bin"), "{text}");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = validate("cni:no/such.conflist", &[])
        .err()
        .expect("refused");
    let expected = "cannot read the CNI configuration list `no/such.conflist`";
    assert!(error.to_string().starts_with(expected), "{error}");
}

#[test]
fn two_builds_of_a_plugin_are_two_networks() {
    if !testkit::in_private_namespaces("two builds of a plugin") {
        return;
    }
    let [main, change] = [Workshop::new(), Workshop::new()];
    main.plugin("first", GOOD);
    main.plugin("second", GOOD);
    change.plugin("first", &format!("{GOOD}# changed"));
    let name = main.list("1.0.0", &["first", "second"]);
    let changed = format!("{name}@{}", change.path().display());
    let directories = [main.path().to_owned()];
    let programs = |name: &str| {
        let network = validate(name, &directories).expect("valid").network;
        let list = network.list().expect("a record").expect("of a list");
        list.plugins.into_iter().map(|it| it.sha256)
    };
    let pairs: Vec<_> = programs(&name).zip(programs(&changed)).collect();
    assert_ne!(pairs[0].0, pairs[0].1, "the changed one is taken");
    assert_eq!(
        pairs[1].0, pairs[1].1,
        "the others are those that there are"
    );
}

#[test]
fn a_directory_without_any_plugin_of_the_list_is_refused() {
    if !testkit::in_private_namespaces("a directory without any plugin") {
        return;
    }
    let [full, empty] = [Workshop::new(), Workshop::new()];
    full.plugin("first", GOOD);
    let name = full.list("1.0.0", &["first"]);
    let name = format!("{name}@{}", empty.path().display());
    let directories = [full.path().to_owned()];
    let error = validate(&name, &directories).err().expect("refused");
    assert!(matches!(error, LabError::Unsupported { .. }), "{error}");
    let expected = format!("{}, which has none of first", empty.path().display());
    assert!(error.to_string().contains(&expected), "{error}");
}

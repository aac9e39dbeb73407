//! A CNI configuration list (containernetworking/cni, SPEC.md, section 1, for
//! versions 0.4.0, 1.0.0 and 1.1.0), and our section in it.

use std::fs::File;
use std::io::{self, Read as _};
use std::iter;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::error::CniError;
use crate::addressing::Addressing;

/// Longest list that is read, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// The versions that are spoken here, the best first. CHECK came with 0.4.0.
const VERSIONS: [&str; 3] = ["1.1.0", "1.0.0", "0.4.0"];

/// Keys that CNI gives a meaning in what a plugin is given. Plugins are written with a library
/// that takes them in any case.
const KEYS: [&str; 7] = [
    "cniVersion",
    "dataDir",
    "ipam",
    "name",
    "prevResult",
    "runtimeConfig",
    "type",
];

/// A list as one node has it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct List {
    pub(super) name: String,
    #[serde(default, rename = "cniVersion")]
    version: String,
    /// All versions that may be spoken, from 1.1.0.
    #[serde(default, rename = "cniVersions")]
    versions: Vec<String>,
    #[serde(default, rename = "disableCheck")]
    pub(super) disable_check: bool,
    pub(super) plugins: Vec<Plugin>,
    #[serde(default)]
    pub(super) plumbline: PlumblineSection,
}

/// One plugin's part.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Plugin {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    capabilities: Map<String, Value>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// Our section: what the list leaves to the operator of a cluster.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlumblineSection {
    #[serde(default)]
    pub(super) routes: Routes,
    /// What the runtime knows of a pod, given to plugins that have the
    /// capability of the same name.
    #[serde(default, rename = "runtimeConfig")]
    runtime: Map<String, Value>,
}

/// The routes between nodes.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Routes {
    /// To each other node's pods by that node's address, as host-gw has them.
    #[default]
    Nodes,
    /// None: pods are on one segment, or a plugin sees to it.
    None,
}

/// What stands for a node's own values in the text of a list, with the value
/// on node `number`.
fn placeholders(addressing: Addressing, number: u8, mtu: u32) -> [(&'static str, String); 7] {
    let network = |address, prefix| format!("{address}/{prefix}");
    let pods = addressing.subnet_prefix();
    [
        // The name that containerd has for it in its templates.
        ("{{.PodCIDR}}", network(addressing.subnet(number), pods)),
        (
            "{{.ClusterCIDR}}",
            network(addressing.subnet(0), addressing.cluster_prefix()),
        ),
        ("{{.FirstPod}}", addressing.pod(number, 0).to_string()),
        ("{{.LastPod}}", addressing.pod(number, 200).to_string()),
        ("{{.Gateway}}", addressing.gateway(number).to_string()),
        ("{{.Everywhere}}", network(addressing.everywhere(), 0)),
        ("{{.MTU}}", mtu.to_string()),
    ]
}

/// The text of a list, or an error where that is longer than any list.
pub(super) fn read(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = File::open(file)?;
    let length = file.take(MOST_BYTES + 1).read_to_string(&mut text)?;
    if length as u64 > MOST_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(text)
}

impl Plugin {
    /// The plugin that it has its addresses from, if any.
    pub(super) fn ipam(&self) -> Option<&str> {
        self.rest.get("ipam")?.get("type")?.as_str()
    }

    /// A key that is one of CNI's in another case: to us another one, to a plugin the same.
    fn misspelt(&self) -> Option<&str> {
        let ipam = self.rest.get("ipam").and_then(Value::as_object);
        let mut keys = iter::once(&self.rest).chain(ipam).flat_map(Map::keys);
        let is_misspelt = |key: &&String| {
            KEYS.iter()
                .any(|it| key.eq_ignore_ascii_case(it) && *key != it)
        };
        keys.find(is_misspelt).map(String::as_str)
    }
}

impl List {
    /// Reads a list for node `number`, from 1. `file` is for the error text.
    pub(super) fn parse(
        file: &Path,
        text: &str,
        addressing: Addressing,
        number: u8,
        mtu: u32,
    ) -> Result<Self, CniError> {
        let wrong = |problem: String| CniError::List {
            file: file.into(),
            problem,
        };
        let known = placeholders(addressing, number, mtu);
        let mut filled = text.to_owned();
        for (placeholder, value) in &known {
            filled = filled.replace(placeholder, value);
        }
        if let Some(at) = filled.find("{{") {
            let rest = &filled[at..];
            let end = rest.find("}}").map_or(rest.len(), |end| end + 2);
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            let problem = format!("has `{}`; there are {}", &rest[..end], names.join(", "));
            return Err(wrong(problem));
        }
        let list: Self = serde_json::from_str(&filled)
            .map_err(|error| wrong(format!("is not understood: {error}")))?;
        if list.plugins.is_empty() {
            return Err(wrong(
                "has no plugins; put at least one into `plugins`".into(),
            ));
        }
        if let Some(key) = list.plugins.iter().find_map(Plugin::misspelt) {
            let known = KEYS.iter().find(|it| it.eq_ignore_ascii_case(key));
            let known = known.copied().unwrap_or_default();
            return Err(wrong(format!("has `{key}`; CNI writes `{known}`")));
        }
        if list.candidates().is_empty() {
            let problem = format!(
                "wants version {}; {} are spoken here",
                list.asks_for(),
                VERSIONS.join(", ")
            );
            return Err(wrong(problem));
        }
        Ok(list)
    }

    /// The versions that the list allows and that are spoken here, the best first.
    pub(super) fn candidates(&self) -> Vec<&'static str> {
        let allowed = |version: &&str| {
            *version == self.version || self.versions.iter().any(|it| it == version)
        };
        VERSIONS.into_iter().filter(allowed).collect()
    }

    /// The versions that the list names, for messages.
    pub(super) fn asks_for(&self) -> String {
        if self.versions.is_empty() {
            format!("`{}`", self.version)
        } else {
            self.versions.join(", ")
        }
    }

    /// What plugin `plugin` is given on its standard input (SPEC.md, section 3,
    /// "deriving request configuration").
    pub(super) fn request(
        &self,
        plugin: &Plugin,
        version: &str,
        previous: Option<&Value>,
        storage: &Path,
    ) -> Value {
        let mut request = plugin.rest.clone();
        request.insert("type".into(), plugin.kind.clone().into());
        request.insert("name".into(), self.name.clone().into());
        request.insert("cniVersion".into(), version.into());
        let granted = |name: &&String| plugin.capabilities.get(*name) == Some(&Value::Bool(true));
        let runtime: Map<String, Value> = self
            .plumbline
            .runtime
            .keys()
            .filter(granted)
            .map(|name| (name.clone(), self.plumbline.runtime[name].clone()))
            .collect();
        if !runtime.is_empty() {
            request.insert("runtimeConfig".into(), runtime.into());
        }
        if let Some(previous) = previous {
            request.insert("prevResult".into(), previous.clone());
        }
        keep_inside(&mut request, plugin, storage);
        request.into()
    }
}

/// Makes the plugins that keep files on the machine keep them in `storage`. A directory
/// that the list names is taken to be below it: the machine's own store is not the run's.
fn keep_inside(request: &mut Map<String, Value>, plugin: &Plugin, storage: &Path) {
    move_inside(request, plugin.kind == "tuning", storage);
    if let Some(ipam) = request.get_mut("ipam").and_then(Value::as_object_mut) {
        let stores = ipam.get("type").and_then(Value::as_str) == Some("host-local");
        move_inside(ipam, stores, storage);
    }
}

/// `stores` says of a plugin that it keeps files also where no directory is named.
fn move_inside(section: &mut Map<String, Value>, stores: bool, storage: &Path) {
    let named = section
        .get("dataDir")
        .map(|it| it.as_str().unwrap_or("").to_owned());
    if !stores && named.is_none() {
        return;
    }
    let mut directory = storage.to_owned();
    let named = PathBuf::from(named.unwrap_or_default());
    directory.extend(
        named
            .components()
            .filter(|it| matches!(it, Component::Normal(_))),
    );
    section.insert("dataDir".into(), directory.display().to_string().into());
}

#[cfg(test)]
mod tests {
    use plumbline_experiment::Family;
    use serde_json::json;

    use super::*;

    fn parse(text: &str) -> Result<List, String> {
        let addressing = Addressing::new(Family::V4);
        let list = List::parse(Path::new("x.conflist"), text, addressing, 2, 1500);
        list.map_err(|error| error.to_string())
    }

    #[test]
    fn a_request_holds_what_the_specification_wants() {
        let text = r#"{"cniVersion": "1.0.0", "name": "lab", "plugins": [
            {"type": "ptp", "mtu": {{.MTU}}, "capabilities": {"ips": true, "mac": false},
             "ipam": {"type": "host-local", "subnet": "{{.PodCIDR}}"}}],
            "plumbline": {"runtimeConfig": {"ips": ["198.19.2.9/24"], "mac": "x", "dns": {}}}}"#;
        let list = parse(text).expect("a list");
        let previous = json!({"ips": []});
        let storage = Path::new("/s");
        let request = list.request(&list.plugins[0], "1.0.0", Some(&previous), storage);
        let expected = json!({
            "type": "ptp", "name": "lab", "cniVersion": "1.0.0", "mtu": 1500,
            "ipam": {"type": "host-local", "subnet": "198.19.2.0/24", "dataDir": "/s"},
            "runtimeConfig": {"ips": ["198.19.2.9/24"]}, "prevResult": {"ips": []},
        });
        assert_eq!(request, expected);
        assert_eq!(list.plumbline.routes, Routes::Nodes);
    }

    #[test]
    fn a_directory_that_the_list_names_is_inside_the_run() {
        let text = r#"{"cniVersion": "1.0.0", "name": "lab", "plugins": [
            {"type": "ptp", "ipam": {"type": "host-local", "dataDir": "/var/lib/cni/../lab"}},
            {"type": "tuning", "dataDir": "/run/cni"}, {"type": "x", "dataDir": "../y"},
            {"type": "z"}]}"#;
        let list = parse(text).expect("a list");
        let request = |at: usize| list.request(&list.plugins[at], "1.0.0", None, Path::new("/s"));
        assert_eq!(request(0)["ipam"]["dataDir"], "/s/var/lib/cni/lab");
        assert_eq!(request(1)["dataDir"], "/s/run/cni");
        assert_eq!(request(2)["dataDir"], "/s/y");
        assert_eq!(request(3).get("dataDir"), None);
    }

    #[test]
    fn what_is_wrong_with_a_list_is_said() {
        for (text, expected) in [
            ("{", "is not understood"),
            (r#"{"name": "a", "plugins": []}"#, "has no plugins"),
            (
                r#"{"name": "a", "cniVersion": "2.0.0", "plugins": [{"type": "x"}]}"#,
                "wants version `2.0.0`; 1.1.0, 1.0.0, 0.4.0 are spoken here",
            ),
            (
                r#"{"name": "{{.Node}}", "plugins": []}"#,
                "has `{{.Node}}`; there are {{.PodCIDR}}",
            ),
            (
                r#"{"name": "a", "cniVersion": "1.0.0", "plugins": [{"type": "x"}],
                    "plumbline": {"route": "none"}}"#,
                "unknown field `route`",
            ),
            (
                r#"{"name": "a", "cniVersion": "1.0.0", "plugins": [{"type": "x", "IPAM": {}}]}"#,
                "has `IPAM`; CNI writes `ipam`",
            ),
            (
                r#"{"name": "a", "cniVersion": "1.0.0", "plugins": [{"type": "x",
                    "ipam": {"type": "host-local", "datadir": "/var/lib/cni"}}]}"#,
                "has `datadir`; CNI writes `dataDir`",
            ),
        ] {
            let error = parse(text).expect_err("refused");
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_list_without_end_is_refused() {
        let error = read(Path::new("/dev/zero")).expect_err("refused");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn the_best_version_of_several_comes_first() {
        let text = r#"{"cniVersion": "1.0.0", "cniVersions": ["0.3.1", "1.0.0", "1.1.0"],
            "name": "a", "plugins": [{"type": "x"}]}"#;
        assert_eq!(
            parse(text).expect("a list").candidates(),
            ["1.1.0", "1.0.0"]
        );
    }
}

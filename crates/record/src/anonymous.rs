//! A record without the names of those whom it was measured at: no names of hosts, nodes
//! and users, no addresses, paths and texts of others. Equal names stay equal, so that pairs,
//! meshes and networks can still be told apart.
//!
//! What is not listed in [`field`] is left out: a field that is new is hidden until somebody
//! decides about it.

mod field;
mod words;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::{Run, SearchRecord, Trial};
use field::Field;

/// What stands for a text that may hold any name.
const LEFT_OUT: &str = "(left out)";
/// What stands for a word of a command line.
const HIDDEN: &str = "…";

/// A record of another shape than its type: a number that is not finite, for one.
#[derive(Debug, thiserror::Error)]
#[error("the record cannot be written without names: {0}")]
pub struct AnonymityError(#[from] serde_json::Error);

/// Names, and what stands for each: the same through a whole run.
#[derive(Clone, Debug, Default)]
pub struct Pseudonyms {
    by_name: BTreeMap<String, String>,
    /// How many of each kind were given.
    given: BTreeMap<&'static str, usize>,
}

impl Pseudonyms {
    /// A run and all its trials without names.
    ///
    /// # Errors
    ///
    /// A record that cannot be written.
    pub fn record(
        mut self,
        run: &Run,
        trials: &[Trial],
    ) -> Result<(Run, Vec<Trial>), AnonymityError> {
        let run = self.run(run)?;
        let trials = trials.iter().map(|trial| self.trial(trial));
        Ok((run, trials.collect::<Result<_, _>>()?))
    }

    /// A run without names. It comes before its trials: the names of its nodes and
    /// networks are known then.
    ///
    /// # Errors
    ///
    /// As [`record`](Self::record).
    pub fn run(&mut self, run: &Run) -> Result<Run, AnonymityError> {
        for node in run.plan.pairing.iter().flat_map(|it| &it.nodes) {
            self.name("node", node);
        }
        for treatment in &run.plan.treatments {
            self.name("network", &treatment.scene.network);
            self.name("network", treatment.scene.network_name());
        }
        let mut shown: Run = self.told(run)?;
        shown.damaged_lines = run.damaged_lines;
        shown.provenance.anonymised = true;
        shown.experiment_text = shown.experiment_text.filter(|text| text != LEFT_OUT);
        Ok(shown)
    }

    /// A trial without names.
    ///
    /// # Errors
    ///
    /// As [`record`](Self::record).
    pub fn trial(&mut self, trial: &Trial) -> Result<Trial, AnonymityError> {
        self.told(trial)
    }

    /// A search without names.
    ///
    /// # Errors
    ///
    /// As [`record`](Self::record).
    pub fn search(&mut self, search: &SearchRecord) -> Result<SearchRecord, AnonymityError> {
        self.told(search)
    }

    fn told<T: Serialize + DeserializeOwned>(&mut self, record: &T) -> Result<T, AnonymityError> {
        let mut value = serde_json::to_value(record)?;
        self.hide(["", ""], &mut value);
        Ok(serde_json::from_value(value)?)
    }

    /// Hides what a value tells that stands under a key in an object, which has a key too.
    /// Both are one argument: of two, rustc 1.95 with link-time optimisation took the first for
    /// what it is at the start, and every parent was empty.
    fn hide(&mut self, at: [&str; 2], value: &mut Value) {
        let [parent, key] = at;
        match value {
            Value::String(text) => *text = self.shown(field::of(parent, key), text),
            Value::Array(items) => {
                let key = format!("{key}[]");
                for item in items {
                    self.hide([parent, &key], item);
                }
            }
            Value::Object(fields) => {
                let names = field::keys_of(key);
                let mut shown = Map::new();
                for (name, mut inner) in std::mem::take(fields) {
                    let under = if names.is_some() { "*" } else { &name };
                    self.hide([key, under], &mut inner);
                    let name = names.map_or(name.clone(), |of| self.shown(of, &name));
                    shown.insert(name, inner);
                }
                *fields = shown;
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn shown(&mut self, field: Field, text: &str) -> String {
        match field {
            Field::Stays => text.to_owned(),
            Field::Name(kind) => self.name(kind, text),
            Field::Command => word_of_command(text),
            Field::Text if words::are_published(text) => text.to_owned(),
            Field::Text => LEFT_OUT.to_owned(),
        }
    }

    /// What stands for a name. Words of the trade stand for themselves.
    fn name(&mut self, kind: &'static str, name: &str) -> String {
        if let Some(known) = self.by_name.get(name) {
            return known.clone();
        }
        if words::are_of_the_trade(name) || words::are_published(name) {
            return name.to_owned();
        }
        let pseudonym = match self.with_known_names(name) {
            Some(shown) => shown,
            None => self.new_pseudonym(kind, name),
        };
        self.by_name.insert(name.to_owned(), pseudonym.clone());
        pseudonym
    }

    /// A name that consists of known names and words of the trade, such as
    /// `node-3 client` or `network-1#2 same-node`.
    fn with_known_names(&self, name: &str) -> Option<String> {
        let mut known: Vec<(&String, &String)> = self.by_name.iter().collect();
        known.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        let mut shown = name.to_owned();
        let mut rest = name.to_owned();
        for (original, pseudonym) in known {
            shown = shown.replace(original, pseudonym);
            rest = rest.replace(original, " ");
        }
        (rest != name && words::are_of_the_trade(&rest)).then_some(shown)
    }

    /// Addresses become those for documentation (RFC 5737, RFC 3849).
    fn new_pseudonym(&mut self, kind: &'static str, name: &str) -> String {
        let address: Option<IpAddr> = name.parse().ok();
        let kind = match address {
            None => kind,
            Some(IpAddr::V4(_)) => "address",
            Some(IpAddr::V6(_)) => "address6",
        };
        let given = self.given.entry(kind).or_default();
        *given += 1;
        let number = *given;
        match (address, u8::try_from(number)) {
            (Some(IpAddr::V4(_)), Ok(last)) => Ipv4Addr::new(192, 0, 2, last).to_string(),
            (Some(IpAddr::V6(_)), Ok(last)) => {
                Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last.into()).to_string()
            }
            // Further addresses of a run are names like any others.
            _ => format!("{kind}-{number}"),
        }
    }
}

/// Flags and words of the trade stay.
fn word_of_command(word: &str) -> String {
    let (flag, value) = word.split_once('=').unwrap_or((word, ""));
    let is_flag = flag.starts_with("--")
        && flag
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_lowercase());
    match (is_flag, words::are_of_the_trade(word)) {
        (_, true) => word.to_owned(),
        (true, false) if value.is_empty() => flag.to_owned(),
        (true, false) => format!("{flag}={HIDDEN}"),
        (false, false) => HIDDEN.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_stay_equal_and_words_of_the_trade_stay() {
        let mut names = Pseudonyms::default();
        assert_eq!(names.name("node", "db7.corp.example"), "node-1");
        assert_eq!(names.name("node", "db8.corp.example"), "node-2");
        assert_eq!(names.name("place", "db7.corp.example"), "node-1");
        assert_eq!(
            names.name("host", "db8.corp.example client"),
            "node-2 client"
        );
        assert_eq!(
            names.name("network", "cni:/home/joe/a.conflist"),
            "network-1"
        );
        assert_eq!(
            names.name("network", "cni:/home/joe/a.conflist#2 same-node"),
            "network-1#2 same-node"
        );
        assert_eq!(
            names.name("network", "host-gw+2us ipv6"),
            "host-gw+2us ipv6"
        );
    }

    #[test]
    fn addresses_become_those_for_documentation() {
        let mut names = Pseudonyms::default();
        let shown = ["10.1.2.3", "10.1.2.4", "10.1.2.3", "fd00::7"].map(|it| names.name("x", it));
        assert_eq!(
            shown,
            ["192.0.2.1", "192.0.2.2", "192.0.2.1", "2001:db8::1"]
        );
    }

    #[test]
    fn of_a_command_flags_stay() {
        let typed = [
            "/home/joe/bin/plumbline",
            "run",
            "--kubeconfig",
            "/home/joe/.kube/config",
            "--network",
            "host,vxlan",
            "--hosts=joe@db7,db8",
            "--blocks",
            "9",
        ];
        let shown = typed.map(word_of_command);
        let expected = [
            "…",
            "run",
            "--kubeconfig",
            "…",
            "--network",
            "host,vxlan",
            "--hosts=…",
            "--blocks",
            "9",
        ];
        assert_eq!(shown, expected);
    }
}

//! When a node's container runtime called its network's plugins for pods, where the node
//! notes that: kubelab has a program before each plugin, which dates its calls into a file
//! that the node's kubelet shows.

use std::time::Instant;

use crate::ClusterError;
use crate::node_proxy;
use crate::session::ClusterConnection;

/// Where the kubelet shows the notes.
const NOTES: &str = "logs/plumbline-cni";

/// The device that a runtime has made up in each pod, beside what the network does.
const LOOPBACK: &str = "lo";

/// A call of a plugin for a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PluginCall {
    /// `ADD` or `DEL`.
    command: String,
    pub(super) plugin: String,
    /// The pod's namespace and name.
    pod: String,
    sandbox: String,
    pub(super) began: Instant,
    pub(super) ended: Instant,
    succeeded: bool,
}

impl PluginCall {
    /// Reads a line; `None` where it is no note, or of the loopback device. `moment` gives
    /// when the node's clock showed so many nanoseconds.
    pub(super) fn read(line: &str, moment: impl Fn(u64) -> Instant) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [command, plugin, device, pod, sandbox, began, ended, code] = words[..] else {
            return None;
        };
        let at = |ns: &str| Some(moment(ns.parse().ok()?));
        (device != LOOPBACK).then_some(Self {
            command: command.to_owned(),
            plugin: plugin.to_owned(),
            pod: pod.to_owned(),
            sandbox: sandbox.to_owned(),
            began: at(began)?,
            ended: at(ended)?,
            succeeded: code == "0",
        })
    }
}

/// The calls that some nodes have noted.
#[derive(Debug, Default)]
pub(super) struct PluginCalls(Vec<PluginCall>);

impl PluginCalls {
    /// Adds what a node has noted so far.
    ///
    /// # Errors
    ///
    /// Why it cannot be read.
    pub(super) fn read(
        &mut self,
        session: &ClusterConnection,
        node: &str,
        moment: impl Fn(u64) -> Instant,
    ) -> Result<(), String> {
        let what = format!("read when node {node} called its network's plugins");
        let notes = node_proxy::read(session, (node, NOTES), &what);
        let notes = notes.map_err(|error| match error {
            ClusterError::Forbidden { .. } => {
                format!("this account may not ask node {node} itself (`get` of nodes/proxy)")
            }
            ClusterError::Refused { message, .. } => {
                format!("node {node} keeps no notes of its own on that ({message})")
            }
            other => other.to_string(),
        })?;
        let calls = notes.lines();
        self.0
            .extend(calls.filter_map(|line| PluginCall::read(line, &moment)));
        Ok(())
    }

    /// The calls of one command for the last sandbox of a pod, by when they ended. Once none
    /// has failed, the command is done: what a kubelet has stopped it stops again before it
    /// removes it, and plugins are called for what is no longer there.
    pub(super) fn of(&self, command: &str, pod: &str) -> Vec<&PluginCall> {
        let of_pod = |it: &&PluginCall| it.command == command && it.pod == pod;
        let mut calls: Vec<&PluginCall> = self.0.iter().filter(of_pod).collect();
        calls.sort_by_key(|it| it.ended);
        let last = calls.last().map(|it| it.sandbox.clone());
        calls.retain(|it| Some(&it.sandbox) == last.as_ref());
        let mut attempt: Vec<&PluginCall> = Vec::new();
        for call in calls {
            if attempt.iter().any(|it| it.plugin == call.plugin) {
                if attempt.iter().all(|it| it.succeeded) {
                    break;
                }
                attempt.clear();
            }
            attempt.push(call);
        }
        attempt
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::planted::{PlantedServer, Reply};

    /// Of a pod whose first sandbox failed, and of another one, whose second stop succeeded.
    const NOTED: &str = "\
        ADD bridge eth0 n/launched-1 first 10 20 1\n\
        DEL bridge eth0 n/launched-1 first 21 22 0\n\
        ADD loopback lo n/launched-1 second 29 95 0\n\
        ADD bridge eth0 n/launched-1 second 30 70 0\n\
        ADD ptp eth0 n/launched-2 other 31 71 0\n\
        ADD portmap eth0 n/launched-1 second 72 90 0\n\
        DEL portmap eth0 n/launched-2 other 80 81 0\n\
        DEL ptp eth0 n/launched-2 other 82 83 1\n\
        DEL portmap eth0 n/launched-2 other 90 91 0\n\
        DEL ptp eth0 n/launched-2 other 92 93 0\n\
        DEL portmap eth0 n/launched-2 other 94 95 0\n\
        DEL ptp eth0 n/launched-2 other 96 97 0\n\
        ADD portmap eth0 n/launched-1 second 72";

    #[test]
    fn the_calls_for_a_pods_last_sandbox_are_told() {
        let server = PlantedServer::start([], Reply::Text(NOTED));
        let now = Instant::now();
        let at = |ns| now + Duration::from_nanos(ns);
        let mut calls = PluginCalls::default();
        calls.read(&server.session(), "node1", at).unwrap();
        let path = "GET /api/v1/nodes/node1/proxy/logs/plumbline-cni HTTP/1.1";
        assert_eq!(server.asked(), [path]);
        let of = |command, pod| {
            let calls = calls.of(command, pod).into_iter();
            let dates = calls.map(|it| (it.plugin.clone(), it.began, it.ended));
            dates.collect::<Vec<_>>()
        };
        let dated = |plugin: &str, began, ended| (plugin.to_owned(), at(began), at(ended));
        let expected = [dated("bridge", 30, 70), dated("portmap", 72, 90)];
        assert_eq!(of("ADD", "n/launched-1"), expected);
        assert_eq!(of("DEL", "n/launched-1"), [dated("bridge", 21, 22)]);
        let expected = [dated("portmap", 90, 91), dated("ptp", 92, 93)];
        assert_eq!(of("DEL", "n/launched-2"), expected);
        assert!(calls.of("ADD", "n/launched-3").is_empty());
    }

    #[test]
    fn a_node_that_notes_nothing_is_named() {
        let server = PlantedServer::start([], Reply::Status(404, "NotFound", "404 page not found"));
        let mut calls = PluginCalls::default();
        let refused = calls.read(&server.session(), "node1", |_| Instant::now());
        let refused = refused.unwrap_err();
        assert!(
            refused.contains("node1") && refused.contains("404"),
            "{refused}"
        );
    }
}

//! The script that made the cluster, for tests that do something to its machines.

use std::collections::BTreeSet;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::{Cluster, lasting};
use crate::world::{PATIENCE, skip, stderr, stdout};

/// `tests/kubelab`, where it made the cluster.
pub(super) struct Kubelab(String);

impl Kubelab {
    /// `None`, and a counted skip that says what is missing, where the cluster is not ours.
    pub(super) fn of_cluster(missing: &str) -> Option<Self> {
        let named = std::env::var("PLUMBLINE_TEST_KUBELAB");
        if named.is_err() {
            skip(
                "cluster",
                &format!("PLUMBLINE_TEST_KUBELAB names {missing}"),
            );
        }
        named.ok().map(Self)
    }

    /// Does something to the cluster. What it starts may keep its output open, so that is not
    /// read.
    #[track_caller]
    pub(super) fn order(&self, words: &[&str]) {
        let status = Command::new(&self.0).args(words).status();
        assert!(status.expect("kubelab is there").success(), "{words:?}");
    }

    /// The line of a shell that does it.
    pub(super) fn command(&self, words: &str) -> String {
        format!("{} {words}", self.0)
    }

    /// What a command prints on a node.
    #[track_caller]
    pub(super) fn exec(&self, node: &str, command: &[&str]) -> String {
        let mut kubelab = Command::new(&self.0);
        let output = kubelab.args(["exec", node]).args(command).output();
        let output = output.expect("kubelab is there");
        assert!(output.status.success(), "{command:?}: {}", stderr(&output));
        stdout(&output)
    }
}

/// What the worker nodes have of their own, by node, as it was at one moment.
pub(super) struct NodeInventory {
    kubelab: Kubelab,
    known: BTreeSet<String>,
}

/// The kinds of things that each node has.
const KINDS: [&str; 8] = [
    "device", "address", "qdisc", "route", "rule", "setting", "mount", "process",
];

/// Lists a node, a line for each thing: of nftables the names of what it has, because that is
/// also how iptables may keep its rules, which are listed beside. Not listed are the bridge that
/// the first pods of a node leave to the next ones, what kube-proxy writes and takes a minute to
/// remove (the services are objects of the cluster), and the file, always empty, by which one
/// tuner at a time has the node.
const SHOW: &str = r#"
kind() { sed "s|^[[:space:]]*|$1 |"; }
{
    ip -o link | cut -d : -f 2 | kind device
    ip -o address | awk '{ print $2, $3, $4 }' | kind address
    tc qdisc show | sed 's/ refcnt [0-9]*//' | kind qdisc
    # A number of what is tracked now is no setting.
    grep -rs '' /proc/sys/net | grep -v nf_conntrack_count | kind setting
    for family in -4 -6; do
        # A route has the flag while no pod is there.
        ip $family route show table all | sed 's/ linkdown//' | kind route
        ip $family rule | kind rule
    done
    nft --stateless list ruleset | grep -E '^(table|[[:space:]]+(chain|set|map)) ' | kind nftables
    for save in iptables-save ip6tables-save; do
        $save | sed 's/ *\[[0-9:]*\]$//; /^#/d' | kind $save
    done
    cut -d ' ' -f 5 /proc/self/mountinfo | kind mount
    # The second of a name is another thing than the first. Nothing else of this runs meanwhile.
    processes=$(cat /proc/[0-9]*/comm)
    echo "$processes" | awk '{ print $0, ++count[$0] }' | kind process
    ls -A /run/plumbline | grep -v '^tune.lock$' | kind /run/plumbline
} 2>/dev/null | grep -vE 'cni0|KUBE-'
"#;

impl NodeInventory {
    /// `None`, and a counted skip, where the nodes are not ours to look at.
    pub(super) fn take(cluster: &Cluster) -> Option<Self> {
        let kubelab = Kubelab::of_cluster("no nodes to look at")?;
        let known = Self::now(cluster, &kubelab);
        Some(Self { kubelab, known })
    }

    #[track_caller]
    fn now(cluster: &Cluster, kubelab: &Kubelab) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        for node in cluster.workers() {
            let shown = kubelab.exec(&node, &["sh", "-c", SHOW]);
            for kind in KINDS {
                let has_any = shown.lines().any(|line| line.starts_with(kind));
                assert!(has_any, "{node} shows no {kind}: {shown}");
            }
            all.extend(shown.lines().map(|line| format!("{node}: {line}")));
        }
        all
    }

    /// What they have now and had not.
    #[track_caller]
    fn new_since(&self, cluster: &Cluster) -> Vec<String> {
        let now = Self::now(cluster, &self.kubelab);
        now.difference(&self.known).cloned().collect()
    }

    /// Waits until the nodes have nothing that they had not: pods that end take theirs with them
    /// when the kubelet gets to it, as those may that were ending before.
    #[track_caller]
    pub(super) fn assert_nothing_new(&self, cluster: &Cluster) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let new = self.new_since(cluster);
            if new.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "new on the nodes: {new:#?}");
            thread::sleep(Duration::from_millis(500));
        }
    }
}

#[test]
fn what_is_left_on_a_node_is_found() {
    let Some(cluster) = lasting() else { return };
    let Some(nodes) = NodeInventory::take(&cluster) else {
        return;
    };
    let node = &cluster.workers()[0];
    for (plant, remove, found) in [
        (
            "ip link add planted type bridge",
            "ip link del planted",
            "device planted",
        ),
        (
            "ip -6 rule add priority 7 table 7",
            "ip -6 rule del priority 7",
            "rule 7:",
        ),
        (
            "ip address add 192.0.2.1 dev lo",
            "ip address del 192.0.2.1/32 dev lo",
            "address lo inet 192.0.2.1",
        ),
        (
            "tc qdisc add dev lo root pfifo",
            "tc qdisc del dev lo root",
            "qdisc qdisc pfifo",
        ),
        (
            "echo 100 >/proc/sys/net/ipv4/ip_default_ttl",
            "echo 64 >/proc/sys/net/ipv4/ip_default_ttl",
            "setting /proc/sys/net/ipv4/ip_default_ttl:100",
        ),
        ("mount -t tmpfs planted /mnt", "umount /mnt", "mount /mnt"),
        (
            "nft add table inet planted",
            "nft delete table inet planted",
            "nftables table inet planted",
        ),
    ] {
        nodes.kubelab.exec(node, &["sh", "-c", plant]);
        let new = nodes.new_since(&cluster);
        nodes.kubelab.exec(node, &["sh", "-c", remove]);
        let wanted = format!("{node}: {found}");
        assert!(new.iter().any(|it| it.starts_with(&wanted)), "{new:?}");
    }
    nodes.assert_nothing_new(&cluster);
}

//! Strangers in the cluster: a NetworkPolicy of the run keeps them out where the network
//! enforces such, and the secret of each trial everywhere.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::rights::{ACCOUNT, Account, SHARED};
use super::{Cluster, cluster, read, short};
use crate::observed::ran_to_its_end;
use crate::world::{eventually, run_directory, runs_in, stderr};

/// What a server in the cluster listens on, and the runs' where a service stands before it.
const PORT: &str = "7117";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Served,
    /// By the pod itself: nothing listens just then, or the secret was not shown.
    Refused,
    /// No packet came back.
    Nothing,
}

/// Pods that belong to no run, removed when dropped.
struct Strangers<'a>(&'a Cluster);

impl<'a> Strangers<'a> {
    /// One that waits, and one that serves anybody.
    fn new(cluster: &'a Cluster) -> Self {
        let strangers = Self(cluster);
        let listen = format!("0.0.0.0:{PORT}");
        strangers.start("stranger", &["hold"]);
        strangers.start("server", &["serve", &listen, "--i-own-this"]);
        let ready = ["wait", "--for=condition=Ready", "--timeout=60s", "pod"];
        cluster.kubectl(&[&ready[..], &["stranger", "server"]].concat());
        strangers
    }

    fn start(&self, name: &str, arguments: &[&str]) {
        let image = format!("--image={}", self.image());
        let run = ["run", name, &image, "--image-pull-policy=IfNotPresent"];
        let command = ["--restart=Never", "--command", "--", "/plumbline"];
        self.0.kubectl(&[&run[..], &command, arguments].concat());
    }

    /// The image that runs take.
    fn image(&self) -> String {
        std::env::var("PLUMBLINE_TEST_IMAGE").unwrap_or_else(|_| {
            let scratch = tempfile::NamedTempFile::new().unwrap();
            let mut image = self.0.plumbline(&["image", "--output"]);
            let said = image.arg(scratch.path()).output().unwrap();
            let text = crate::world::stdout(&said);
            let first = text.split_whitespace().next();
            first
                .unwrap_or_else(|| panic!("{}", stderr(&said)))
                .to_owned()
        })
    }

    /// What a stranger gets who sends load to an address.
    fn get_from(&self, address: &str) -> Answer {
        let to = format!("{address}:{PORT}");
        let load = ["exec", "stranger", "--", "/plumbline", "load", &to];
        let briefly = ["--rate", "50", "--duration", "200ms", "--warm-up", "0ms"];
        let output = self.0.try_kubectl(&[load, briefly].concat());
        let said = stderr(&output);
        if output.status.success() {
            Answer::Served
        } else if said.contains("nothing listens") || said.contains("closed the connection") {
            Answer::Refused
        } else {
            Answer::Nothing
        }
    }

    /// Whether the network does what a NetworkPolicy says.
    fn are_kept_out_by_policies(&self) -> bool {
        let path = "jsonpath={.status.podIP}";
        let address = self.0.kubectl(&["get", "pod", "server", "--output", path]);
        assert_eq!(
            self.get_from(&address),
            Answer::Served,
            "there is no policy yet"
        );
        let nobody = r#"{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
            "metadata": {"name": "nobody"},
            "spec": {"podSelector": {"matchLabels": {"run": "server"}}, "policyTypes": ["Ingress"]}}"#;
        self.0.apply(nobody, "default");
        // Networks take a moment to act.
        (0..10).any(|_| {
            std::thread::sleep(Duration::from_millis(500));
            self.get_from(&address) == Answer::Nothing
        })
    }
}

impl Drop for Strangers<'_> {
    fn drop(&mut self) {
        for what in ["pod/stranger", "pod/server", "networkpolicy/nobody"] {
            // Some are not there yet when a test fails.
            let flags = ["--ignore-not-found", "--grace-period=0", "--wait"];
            let _ = self
                .0
                .try_kubectl(&[&["delete", what][..], &flags].concat());
        }
    }
}

/// What came without the secret, in all trials of a run.
fn counted(trials: &[Value]) -> u64 {
    let seen = trials.iter().filter(|it| it["observation"].is_object());
    let of = |it: &Value| it["observation"]["what"]["serve"]["strangers"].as_u64();
    seen.map(|it| of(it).expect("a server counts them")).sum()
}

/// The record and the trials of a run with the rights of an account, and whether its server
/// answered a stranger in any way meanwhile.
fn beside_a_stranger(
    account: &Account<'_>,
    strangers: &Strangers<'_>,
    other: &[&str],
) -> (Value, Vec<Value>, bool) {
    let cluster = account.cluster;
    let flags = [
        "--namespace",
        SHARED,
        "--network",
        "cluster-ip",
        "--duration",
        "2s",
    ];
    let mut command = cluster.run(&short(
        &[&flags[..], &["--blocks", "2", "--baseline", "cluster-ip"]].concat(),
    ));
    command.args(other).env("KUBECONFIG", account.config.path());
    let earlier = runs_in(cluster.out());
    let mut run = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut made = None;
    eventually("there is a run", Duration::from_secs(60), || {
        made = runs_in(cluster.out())
            .into_iter()
            .find(|it| !earlier.contains(it));
        made.is_some()
    });
    let get = |what: &[&str], output: &str| {
        let list = ["--namespace", SHARED, "--output", output];
        cluster.kubectl(&[&["get"], what, &list].concat())
    };
    let server = ["pods", "--selector", "plumbline/seat=server-cluster-ip"];
    let address = get(&server, "jsonpath={.items[0].status.podIP}");
    let policies = get(&["networkpolicies"], "name");
    assert_eq!(
        policies.lines().count(),
        usize::from(other.is_empty()),
        "{policies}"
    );
    let mut was_answered = false;
    while run.try_wait().unwrap().is_none() {
        let answer = strangers.get_from(&address);
        assert_ne!(answer, Answer::Served, "the secret holds everywhere");
        was_answered |= answer == Answer::Refused;
    }
    let (record, trials) = read(&made.unwrap());
    (record, trials, was_answered)
}

#[test]
fn strangers_do_not_reach_the_receivers_of_a_run_where_policies_act() {
    let Some(cluster) = cluster() else { return };
    let before = cluster.inventory();
    let account = Account::new(&cluster);
    account.is_granted("role", &["rolebinding", ACCOUNT, "--role=plumbline"]);
    let strangers = Strangers::new(&cluster);
    let are_kept_out = strangers.are_kept_out_by_policies();
    if std::env::var_os("PLUMBLINE_TEST_POLICIES").is_some() {
        assert!(are_kept_out, "this network was said to enforce policies");
    }

    let (record, trials, was_answered) = beside_a_stranger(&account, &strangers, &[]);
    let fact = &record["fingerprint"]["versions"]["policy of the run"];
    assert_eq!(fact, "admits its own pods");
    assert_eq!(was_answered, !are_kept_out, "not even refused");
    assert!(counted(&trials) == 0 || !are_kept_out);
    let kept = trials
        .iter()
        .filter(|it| it["status"]["status"] != "failed");
    assert!(kept.count() >= 2, "its own pods get through");

    let (record, trials, was_answered) = beside_a_stranger(&account, &strangers, &["--no-policy"]);
    assert!(record["fingerprint"]["versions"]["policy of the run"].is_null());
    assert!(was_answered, "they come up to the secret");
    assert!(counted(&trials) > 0, "and are counted");
    drop((strangers, account));
    assert_eq!(cluster.inventory(), before);
}

#[test]
fn without_the_right_to_make_a_policy_a_run_goes_on_and_says_so_once() {
    let Some(cluster) = cluster() else { return };
    let account = Account::new(&cluster);
    account.is_granted("role", &["rolebinding", ACCOUNT, "--role=plumbline"]);
    account.may_only_list("networkpolicies");
    let output = account.run(&["--network", "pod"]);
    let run = run_directory(cluster.out());
    ran_to_its_end(&output, &run);
    let (record, trials) = read(&run);
    assert!(!trials.is_empty(), "{}", stderr(&output));
    let warnings = record["warnings"].as_array().unwrap();
    let unguarded = warnings.iter().filter(|it| it["warning"] == "unguarded");
    let why: Vec<&str> = unguarded.filter_map(|it| it["why"].as_str()).collect();
    assert!(
        matches!(why[..], [one] if one.contains("manifest role")),
        "{why:?}"
    );
    assert_eq!(account.shared(), "");
}

impl Cluster {
    /// Applies a manifest in a namespace.
    #[track_caller]
    pub(super) fn apply(&self, manifest: &str, namespace: &str) {
        let mut kubectl = Command::new("kubectl");
        let apply = ["apply", "--namespace", namespace, "--filename", "-"];
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), manifest).unwrap();
        let from = std::fs::File::open(file.path()).unwrap();
        kubectl
            .args(apply)
            .env("KUBECONFIG", &self.config)
            .stdin(from);
        let output = kubectl.output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }
}

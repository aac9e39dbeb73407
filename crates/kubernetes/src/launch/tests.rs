//! Launches in a made-up cluster.

use super::*;
use crate::bulk::tests::mark;
use crate::planted::{PlantedServer, Reply};
use crate::session::ClusterConnection;

static NEVER: AtomicBool = AtomicBool::new(false);
static GIVEN_UP: AtomicBool = AtomicBool::new(true);

const GONE: Reply = Reply::Status(404, "NotFound", "no such pod");

/// Three pods that begin 10 ms apart.
fn lot(session: &ClusterConnection) -> LaunchedLot<'_> {
    let pod = |pod| {
        let order = LaunchedOrder {
            peer: ([10, 0, 0, 7], 40_001).into(),
            launch: "9f".to_owned(),
            pod,
        };
        manifest::launched(&order, "b", "image:1", &mark())
    };
    LaunchedLot {
        session,
        api: Api::namespaced(session.client(), "n"),
        pods: (0..3).map(pod).collect(),
        selector: format!("{LAUNCH}=9f"),
        gap: Duration::from_millis(10),
        given_up: &NEVER,
    }
}

#[test]
fn each_pod_is_asked_for_at_its_moment_and_all_are_deleted() {
    let server = PlantedServer::start([Reply::Echo; 3], Reply::Gone);
    let session = server.session();
    let lot = lot(&session);
    let begun = lot.begin().unwrap();
    let gaps = begun
        .windows(2)
        .map(|two| two[1].intended - two[0].intended);
    assert!(gaps.eq([lot.gap; 2]));
    for asked in &begun {
        assert!(asked.begun >= asked.intended);
        assert!(asked.answered().is_some_and(|it| it >= asked.begun));
    }
    drop(lot);
    let asked = server.asked();
    assert_eq!(asked.len(), 4, "{asked:?}");
    let created = asked[..3].iter();
    let is_created = |it: &String| it.starts_with("POST /api/v1/namespaces/n/pods?");
    assert!(created.clone().all(is_created), "{asked:?}");
    let ours = "DELETE /api/v1/namespaces/n/pods?&labelSelector=plumbline%2Flaunch%3D9f";
    assert!(asked[3].starts_with(ours), "{asked:?}");
}

/// No trial tells more than the first refusal.
#[test]
fn a_launch_of_which_nothing_is_accepted_is_refused() {
    for (message, remedy) in [
        (
            "pods \"x\" is forbidden: exceeded quota: few, requested: pods=1",
            "ResourceQuota",
        ),
        (
            "pods is forbidden: User \"ann\" cannot create resource \"pods\"",
            "manifest role",
        ),
    ] {
        let server = PlantedServer::start([], Reply::Status(403, "Forbidden", message));
        let session = server.session();
        let refused = lot(&session).begin().err().unwrap().to_string();
        assert!(refused.contains("create pod launched-9f-0"), "{refused}");
        assert!(refused.contains(remedy), "{refused}");
    }
}

#[test]
fn a_pod_that_was_refused_is_one_of_many() {
    let over = "pods \"x\" is forbidden: exceeded quota: few, requested: pods=1";
    let over = Reply::Status(403, "Forbidden", over);
    let server = PlantedServer::start([Reply::Echo, over, Reply::Echo], GONE);
    let session = server.session();
    let lot = lot(&session);
    let begun = lot.begin().unwrap();
    let accepted: Vec<bool> = begun.iter().map(|it| it.answered.is_ok()).collect();
    assert_eq!(accepted, [true, false, true]);
    let seen = came(&begun[1], None, &[], &ShownPod::default());
    assert!(seen.error.unwrap().contains("exceeded quota"));
    assert!(seen.placed.is_empty() && seen.shown.is_empty());
    let ended = lot.end(&begun).unwrap();
    let asked: Vec<bool> = ended.iter().map(Option::is_some).collect();
    assert_eq!(asked, [true, false, true]);
}

/// What they were launched beside has failed.
#[test]
fn a_launch_that_is_given_up_asks_for_nothing() {
    let server = PlantedServer::start([Reply::Echo; 3], Reply::Gone);
    let session = server.session();
    let mut lot = lot(&session);
    lot.given_up = &GIVEN_UP;
    assert!(matches!(lot.begin(), Err(ClusterError::Interrupted)));
    assert!(server.asked().is_empty());
}

/// Milliseconds after the moment of a pod.
fn asked() -> (AskedChange, impl Fn(u64) -> Option<Instant>) {
    let intended = Instant::now();
    let at = move |ms| intended + Duration::from_millis(ms);
    let asked = AskedChange {
        intended,
        begun: at(1),
        answered: Ok(at(4)),
    };
    (asked, move |ms| Some(at(ms)))
}

#[test]
fn a_start_is_told_by_the_cluster_and_by_packets() {
    let (asked, at) = asked();
    let met = SeenPod {
        namespace: at(60),
        sandbox: at(150),
        begun: at(300),
        first_out: at(301),
        first_in: at(302),
        answered: None,
    };
    let shown = ShownPod {
        scheduled: at(9),
        running: at(900),
        ready: at(901),
        ..ShownPod::default()
    };
    let noted = |line| PluginCall::read(line, |ms| at(ms).unwrap()).unwrap();
    let calls = [
        noted("ADD bridge eth0 n/p s 70 110 0"),
        noted("ADD portmap eth0 n/p s 111 153 0"),
    ];
    let calls: Vec<&PluginCall> = calls.iter().collect();
    let seen = came(&asked, Some(&met), &calls, &shown);
    let parts: Vec<(String, u64)> = seen
        .parts()
        .iter()
        .map(|it| (it.name.to_owned(), it.to_ns / 1_000_000))
        .collect();
    let expected = [
        ("lag", 1),
        ("accepted", 4),
        ("scheduled", 9),
        ("namespace", 60),
        ("called", 70),
        ("bridge", 110),
        ("portmap", 153),
        ("sandbox", 153),
        ("program", 300),
        ("first out", 301),
        ("first in", 302),
        ("running", 900),
        ("ready", 901),
    ];
    assert_eq!(parts, expected.map(|(name, ms)| (name.to_owned(), ms)));
    assert_eq!(seen.attach_ns(), Some(93_000_000));
    assert_eq!(seen.add_ns(), Some(83_000_000));
    assert_eq!(seen.error, None);
}

/// By an hour it seems older than the pod where the wall clock was set meanwhile.
#[test]
fn a_namespace_from_before_its_pod_is_not_dated() {
    let (mut asked, at) = asked();
    asked.begun += Duration::from_secs(3_600);
    let met = SeenPod {
        namespace: at(60),
        ..SeenPod::default()
    };
    let seen = came(&asked, Some(&met), &[], &ShownPod::default());
    assert_eq!(seen.namespace_ns, None);
}

#[test]
fn an_end_is_over_when_the_pod_is_gone_and_its_address_silent() {
    let (asked, at) = asked();
    let shown = |gone| ShownPod {
        gone,
        ..ShownPod::default()
    };
    let met = SeenPod {
        answered: at(700),
        ..SeenPod::default()
    };
    let of = |gone| went(&asked, Some(&met), &[], &shown(gone));
    assert_eq!(of(at(500)).ended_ns, Some(700_000_000));
    let late = of(at(900));
    assert_eq!(late.ended_ns, Some(900_000_000));
    let steps: Vec<&str> = late.steps.iter().map(|it| &*it.step).collect();
    assert_eq!(steps, ["accepted", "silent", "gone"]);
    assert_eq!(of(None).ended_ns, None);
    let unheard = went(&asked, None, &[], &shown(at(900)));
    assert_eq!(unheard.ended_ns, Some(900_000_000));
}

//! What services and policies are laid on the nodes of a cluster for a scene.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use plumbline_experiment::{
    FACTORS, Policies, Protocol, Scene, Selected, ServicePosition, ServiceProxy, Treatment,
};
use plumbline_harness::TargetError;
use plumbline_record::{SetUp, Warning};

use crate::ClusterError;
use crate::policies;
use crate::route::ClusterRoute;
use crate::services::ServiceShape;
use crate::session::ClusterConnection;

/// How often it is tried whether something acts.
const LOOK: Duration = Duration::from_millis(20);

/// What is laid on the nodes for a scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClusterDressing {
    pub(crate) services: u32,
    pub(crate) shape: ServiceShape,
    pub(crate) policies: Policies,
}

impl ClusterDressing {
    pub(crate) fn of(scene: &Scene) -> Self {
        Self {
            services: scene.services.count,
            shape: ServiceShape {
                family: scene.family,
                endpoints: scene.services.endpoints,
            },
            policies: scene.policies,
        }
    }

    /// Without what says nothing, so that what is the same is equal.
    pub(crate) fn normalised(self) -> Self {
        let policies = match self.policies.is_none() {
            true => Policies::default(),
            false => self.policies,
        };
        Self { policies, ..self }
    }

    /// How many things are in it that somebody has to act upon.
    pub(crate) fn size(self) -> u32 {
        let endpoints = self.services.saturating_mul(self.shape.endpoints);
        let members = self.policies.count.saturating_mul(self.policies.members);
        endpoints.saturating_add(members)
    }

    pub(crate) fn has_services_of(&self, other: &Self) -> bool {
        self.services == other.services && (self.services == 0 || self.shape == other.shape)
    }

    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let has_policies = !self.policies.is_none();
        let family = self.shape.family;
        self.has_services_of(other)
            && self.policies == other.policies
            && (!has_policies || family == other.shape.family)
    }
}

/// What the plan wants of dressings.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wardrobe {
    /// Whether some scene has services.
    pub(crate) has_services: bool,
    /// Whether some scene has policies.
    pub(crate) has_policies: bool,
    /// Whether policies are to select a pod beside the receivers.
    pub(crate) has_others: bool,
}

impl Wardrobe {
    /// Notes what a treatment wants to be laid on the nodes.
    ///
    /// # Errors
    ///
    /// What no cluster has.
    pub(crate) fn add(&mut self, treatment: &Treatment) -> Result<(), TargetError> {
        let scene = &treatment.scene;
        if !scene.has_rules() {
            return Ok(());
        }
        check(treatment)?;
        let has_policies = !scene.policies.is_none();
        self.has_services |= !scene.services.is_none();
        self.has_policies |= has_policies;
        self.has_others |= has_policies && scene.policies.selects == Selected::Others;
        Ok(())
    }

    /// Whether some scene has anything.
    pub(crate) fn is_used(self) -> bool {
        self.has_services || self.has_policies
    }

    /// What to distrust where it is used; whether pods are in the nodes' networks, and see what
    /// these track.
    pub(crate) fn warning(self, is_seen: bool) -> Option<Warning> {
        (self.is_used() && !is_seen).then_some(Warning::TrackingUnseen)
    }
}

/// What stands beside the paths.
#[derive(Default)]
pub(crate) struct StandingDressing {
    /// What acts; `None` where a change failed half way.
    pub(crate) acts: Option<ClusterDressing>,
    /// The share of CPU that the busiest node was busy with before anything was laid on it.
    pub(crate) busy_before: Option<f64>,
    /// Services that may be there, from number 0 on, and how they were made.
    pub(crate) made: Option<(u32, ServiceShape)>,
    /// The number of the last pair of beacons; 0 for none.
    pub(crate) beacons: u32,
    /// Whether there may be policies.
    pub(crate) has_policies: bool,
    /// What changes took that were not recorded yet.
    set_ups: VecDeque<SetUp>,
}

impl StandingDressing {
    /// Notes what a change for a scene took.
    pub(crate) fn note(&mut self, scene: &Scene, took: Took) {
        self.set_ups.push_back(SetUp {
            network: name(scene),
            took_ns: took.made.as_nanos() as u64,
            paths_ns: Some(took.acted.as_nanos() as u64),
            came_up: true,
            log: String::new(),
            fingerprint: None,
        });
    }

    /// What the earliest change took that was not recorded yet.
    pub(crate) fn take_set_up(&mut self) -> Option<SetUp> {
        self.set_ups.pop_front()
    }
}

/// How long a change took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Took {
    /// Until the API server had answered all requests.
    made: Duration,
    /// From there until it acted.
    acted: Duration,
}

impl Took {
    pub(crate) fn since(started: Instant, made: Duration) -> Self {
        Self {
            made,
            acted: started.elapsed().saturating_sub(made),
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.made += other.made;
        self.acted += other.acted;
    }
}

/// Refuses what no cluster has.
fn check(treatment: &Treatment) -> Result<(), TargetError> {
    let scene = &treatment.scene;
    let unsupported = |what: &str, needs: &str| {
        Err(TargetError::Unsupported {
            what: what.to_owned(),
            needs: needs.to_owned(),
        })
    };
    let services = scene.services;
    if !services.is_none() && services.position != ServicePosition::None {
        let position = services.position.as_str();
        return unsupported(
            &format!("position `{position}` in a cluster"),
            "a lab, which writes the rules itself: kube-proxy orders services by chance, anew with \
             each change. Use position \"none\": then the path `pod` asks no service and passes the \
             rules of all, and `cluster-ip` asks one that stands anywhere among them",
        );
    }
    if scene.policies.is_none() {
        return Ok(());
    }
    if treatment.task.load().map(|load| load.protocol) == Some(Protocol::Udp) {
        let what = format!("policies under {}, which is UDP", treatment.task.name());
        return unsupported(&what, "a workload of TCP, whose port they allow");
    }
    let route = ClusterRoute::of(scene)?;
    if route.needs_host_network() || route.comes_from_node() {
        let what = format!("policies on the path `{}`", route.name());
        return unsupported(
            &what,
            "a path between pods, which they select: `pod` or `cluster-ip`",
        );
    }
    match policies::lacks(&scene.policies) {
        Some(needs) => unsupported("these policies", &needs),
        None => Ok(()),
    }
}

/// What a cluster has in the place of this proxy, by the mode that it shows; `None` where
/// it has this one.
pub(crate) fn other_proxy(wanted: ServiceProxy, mode: Option<&str>) -> Option<String> {
    match mode {
        Some(mode) if mode == wanted.as_str() => None,
        Some("iptables") => {
            Some("kube-proxy says `iptables` here, and not in whose tables".to_owned())
        }
        Some(mode) => Some(format!("this one has {mode}")),
        None => Some(
            "this account may not see which this one has, unless --allow-host-network lets pods \
             ask kube-proxy"
                .to_owned(),
        ),
    }
}

/// The treatment whose scene has the most of something, if any has some.
pub(crate) fn most(all: &[Treatment], size: fn(&Scene) -> u32) -> Option<&Treatment> {
    let sized = all.iter().filter(|it| size(&it.scene) > 0);
    sized.max_by_key(|it| size(&it.scene))
}

/// Asks again and again what is wrong, until nothing is.
///
/// # Errors
///
/// [`ClusterError::TooLong`] with the last answer, or nobody could be asked.
pub(crate) fn until_right(
    session: &ClusterConnection,
    what: &str,
    limit: Duration,
    mut ask: impl FnMut() -> Result<Option<String>, TargetError>,
) -> Result<(), ClusterError> {
    let started = Instant::now();
    while let Some(wrong) = ask()? {
        if started.elapsed() > limit {
            return Err(ClusterError::TooLong {
                what: what.to_owned(),
                limit,
                hint: format!(": {wrong}"),
            });
        }
        session.pause(LOOK)?;
    }
    Ok(())
}

/// What is laid on the nodes, in words.
fn name(scene: &Scene) -> String {
    let of = FACTORS
        .iter()
        .filter(|it| ["services", "policies"].contains(&it.name));
    let words: Vec<String> = of
        .map(|it| (it.label)(scene))
        .filter(|it| !it.is_empty())
        .collect();
    match words[..] {
        [] => "no services or policies".to_owned(),
        _ => words.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use plumbline_experiment::{Services, Task, Timing, Workload, WorkloadKind};

    use super::*;
    use crate::planted::{PlantedServer, Reply};

    fn treatment(path: &str, services: Services, policies: Policies) -> Treatment {
        Treatment {
            id: 0,
            label: path.to_owned(),
            scene: Scene {
                services,
                policies,
                ..Scene::default().by(path)
            },
            copy: 1,
            task: Task::Load(Workload::of_kind(WorkloadKind::Rr)),
            timing: Timing {
                warm_up_ns: 0,
                measure_ns: 1,
                drain_ns: 1,
            },
            baseline: None,
        }
    }

    #[test]
    fn tracked_connections_that_nobody_sees_are_a_warning() {
        let mut wardrobe = Wardrobe::default();
        assert_eq!(wardrobe.warning(false), None);
        let policies = Policies {
            count: 1,
            ..Policies::default()
        };
        let treatment = treatment("pod", Services::default(), policies);
        wardrobe.add(&treatment).unwrap();
        assert_eq!(wardrobe.warning(false), Some(Warning::TrackingUnseen));
        assert_eq!(wardrobe.warning(true), None);
    }

    fn services(count: u32, position: ServicePosition) -> Services {
        Services {
            count,
            position,
            ..Services::default()
        }
    }

    fn ten_policies() -> Policies {
        Policies {
            count: 10,
            ..Policies::default()
        }
    }

    #[test]
    fn what_no_cluster_has_is_refused_with_what_it_has() {
        let refusal = |it: Treatment| check(&it).unwrap_err().to_string();
        for position in [
            ServicePosition::First,
            ServicePosition::Middle,
            ServicePosition::Last,
        ] {
            let said = refusal(treatment("pod", services(7, position), Policies::default()));
            assert!(said.contains("position \"none\""), "{said}");
        }
        for path in ["host", "pod-host", "node-port"] {
            let said = refusal(treatment(path, Services::default(), ten_policies()));
            assert!(said.contains("`pod` or `cluster-ip`"), "{said}");
        }
        let mut udp = treatment("pod", Services::default(), ten_policies());
        udp.task.load_mut().unwrap().protocol = Protocol::Udp;
        assert!(refusal(udp).contains("UDP"));
        for path in ["pod", "cluster-ip"] {
            let seven = services(7, ServicePosition::None);
            check(&treatment(path, seven, ten_policies())).unwrap();
        }
    }

    #[test]
    fn what_says_nothing_makes_no_difference() {
        let of = |services: Services, policies| {
            ClusterDressing::of(&treatment("pod", services, policies).scene).normalised()
        };
        let bare = of(Services::default(), Policies::default());
        let many_endpoints = Services {
            endpoints: 9,
            ..Services::default()
        };
        assert!(bare.is_like(&of(many_endpoints, Policies::default())));
        assert!(!bare.is_like(&of(Services::default(), ten_policies())));
        let [seven, eight] = [7, 8].map(|count| {
            let services = services(count, ServicePosition::None);
            of(services, Policies::default())
        });
        assert!(!seven.is_like(&eight) && !seven.is_like(&bare));
    }

    #[test]
    fn a_proxy_is_there_only_where_the_cluster_says_so() {
        let other = |mode| other_proxy(ServiceProxy::Nftables, mode);
        assert_eq!(other(Some("nftables")), None);
        assert!(other(Some("ipvs")).unwrap().contains("ipvs"));
        assert!(other(None).unwrap().contains("--allow-host-network"));
        let legacy = other_proxy(ServiceProxy::IptablesLegacy, Some("iptables"));
        assert!(legacy.unwrap().contains("whose tables"));
    }

    /// Such as a proxy that never has all services.
    #[test]
    fn what_never_acts_is_told_with_its_last_answer() {
        let server = PlantedServer::start([], Reply::Nothing);
        let (session, limit) = (server.session(), Duration::from_secs(2));
        let mut asked = 0;
        let wait = |ask: &mut dyn FnMut() -> Option<String>| {
            until_right(&session, "writing rules", limit, || Ok(ask()))
        };
        let error = wait(&mut || {
            asked += 1;
            Some(format!("no answer to try {asked}"))
        });
        let told = error.unwrap_err().to_string();
        let last = format!("no answer to try {asked}");
        assert!(asked > 1 && told.contains(&last), "{told}");
        assert!(told.contains("writing rules"), "{told}");
        let mut late = vec![None, Some("not yet".to_owned())];
        wait(&mut || late.pop().expect("not asked again")).unwrap();
    }

    #[test]
    fn what_is_laid_on_is_said_in_words() {
        let name = |services, policies| name(&treatment("pod", services, policies).scene);
        let seven = services(7, ServicePosition::None);
        assert_eq!(name(seven, Policies::default()), "7 services");
        assert_eq!(name(seven, ten_policies()), "7 services, 10 policies");
        let nothing = name(Services::default(), Policies::default());
        assert_eq!(nothing, "no services or policies");
    }
}

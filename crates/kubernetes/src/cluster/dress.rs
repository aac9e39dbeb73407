//! Laying services and policies beside the paths, and waiting until they act.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumbline_experiment::{Scene, Selected, ServiceProxy, Treatment};
use plumbline_harness::{Site as _, TargetError};

use super::Cluster;
use crate::bulk::RunPlace;
use crate::dressing::{ClusterDressing, Took, most, other_proxy, until_right};
use crate::enforcement::ClusterEnforcement;
use crate::error::ClusterError;
use crate::manifest::PORT;
use crate::path::{ClusterPath, EndProbe};
use crate::seat::Seat;
use crate::site::lock;
use crate::{policies, proxy_mode, services};

/// How long proxies, or a network that enforces policies, may take until they have all: so long,
/// however few there are, and for each one more. Some proxies act only every 30 s.
const CATCH_UP: Duration = Duration::from_secs(60);
const CATCH_UP_EACH: Duration = Duration::from_millis(4);
/// The same for one policy: a network that enforces none never does.
const ENFORCED: Duration = Duration::from_secs(20);
/// Longest wait for a connection that is tried. One whose first packet met no rule never
/// meets one, so the next try is sooner than when that would be sent again.
const TRY: Duration = Duration::from_millis(200);

impl Cluster {
    /// Whether what a treatment wants is laid on the nodes, and acts.
    pub(super) fn is_dressed_for(&self, treatment: &Treatment) -> bool {
        let wanted = ClusterDressing::of(&treatment.scene).normalised();
        let acts = self.dressing.acts.as_ref();
        !self.wardrobe.is_used() || acts.is_some_and(|it| it.is_like(&wanted))
    }

    /// Lays the most of all on the nodes, so that what cannot be had is known before the
    /// first trial.
    pub(super) fn try_dressings(&mut self, all: &[Treatment]) -> Result<(), TargetError> {
        for treatment in all {
            self.check_proxy(&treatment.scene)?;
        }
        let mut dressed = all.iter().filter(|it| it.scene.has_rules());
        self.dressing.busy_before = dressed.next().and_then(|it| self.busy_with_others(it));
        if let Some(policies) = most(all, |it| it.policies.count * it.policies.members) {
            self.check_enforcement(policies)?;
            self.dress(policies)?;
        }
        match most(all, |it| it.services.count * it.services.endpoints) {
            Some(services) => self.dress(services),
            None => Ok(()),
        }
    }

    /// Lays on the nodes what a treatment wants, unless it is there, and waits until it
    /// acts. Paths must stand.
    ///
    /// # Errors
    ///
    /// The API server refuses, or what was made does not act in time.
    pub(super) fn dress(&mut self, treatment: &Treatment) -> Result<(), TargetError> {
        if self.is_dressed_for(treatment) {
            return Ok(());
        }
        self.check_proxy(&treatment.scene)?;
        let wanted = ClusterDressing::of(&treatment.scene).normalised();
        // What goes is work, too.
        let most = self.dressing.acts.map_or(0, ClusterDressing::size);
        let limit = CATCH_UP + CATCH_UP_EACH * wanted.size().max(most);
        let took = self.change_to(wanted, limit)?;
        self.dressing.note(&treatment.scene, took);
        self.settle(treatment);
        Ok(())
    }

    /// Refuses policies where one policy changes nothing.
    fn check_enforcement(&mut self, treatment: &Treatment) -> Result<(), TargetError> {
        let mut wanted = ClusterDressing::of(&treatment.scene);
        wanted.services = 0;
        wanted.policies.count = 1;
        wanted.policies.members = 1;
        match self.change_to(wanted.normalised(), ENFORCED) {
            Err(ClusterError::TooLong { hint, .. }) if self.dressing.has_policies => {
                Err(TargetError::Unsupported {
                    what: format!("policies in {}", treatment.scene.name()),
                    needs: format!(
                        "a network that enforces NetworkPolicies, which this cluster's does not: {} s \
                     after one was made{hint}",
                        ENFORCED.as_secs()
                    ),
                })
            }
            changed => Ok(changed.map(drop)?),
        }
    }

    fn change_to(
        &mut self,
        wanted: ClusterDressing,
        limit: Duration,
    ) -> Result<Took, ClusterError> {
        let was = self.dressing.acts.take();
        let (namespace, mark) = lock(&self.standing).place_of_many()?;
        let session = Arc::clone(&self.session);
        let place = RunPlace {
            session: &session,
            namespace: &namespace,
            mark: &mark,
        };
        let mut took = Took::default();
        let has_same = was.is_some_and(|was| wanted.policies == was.policies);
        if self.dressing.has_policies && !has_same {
            took.add(self.remove_policies(place, limit)?);
        }
        let has_services = was.is_some_and(|was| wanted.has_services_of(&was));
        if self.wardrobe.has_services && !has_services {
            took.add(self.change_services(place, (was, wanted), limit)?);
        }
        if !wanted.policies.is_none() && !has_same {
            took.add(self.make_policies(place, &wanted, limit)?);
        }
        self.dressing.acts = Some(wanted);
        Ok(took)
    }

    fn change_services(
        &mut self,
        place: RunPlace<'_>,
        (was, wanted): (Option<ClusterDressing>, ClusterDressing),
        limit: Duration,
    ) -> Result<Took, ClusterError> {
        let started = Instant::now();
        let mut kept = 0;
        if let Some((made, shape)) = self.dressing.made {
            // After a change that failed it is not known which of them there are.
            if was.is_some() && shape == wanted.shape {
                kept = made.min(wanted.services);
            }
            services::delete(place, kept..made)?;
        }
        // Noted before: some may be there when it fails.
        self.dressing.made = Some((wanted.services, wanted.shape));
        services::apply(place, kept..wanted.services, wanted.shape)?;
        let beacons = self.renew_beacons(place)?;
        let made = started.elapsed();
        let ends = self.crossing()?.probes();
        for end in &ends {
            end.observer.listen(vec![(end.address, PORT).into()])?;
        }
        let what = format!("the rules of {} services", wanted.services);
        let mut asked = ends.iter().zip(beacons);
        let answered = asked.try_for_each(|(end, it)| self.until_answered(end, it, &what, limit));
        for end in &ends {
            end.observer.listen(Vec::new())?;
        }
        answered?;
        Ok(Took::since(started, made))
    }

    /// Makes new beacons in the place of the last: for each end of a path one that leads to
    /// the other end.
    fn renew_beacons(&mut self, place: RunPlace<'_>) -> Result<[SocketAddr; 2], ClusterError> {
        let [client, server] = self.crossing()?.probes();
        let last = self.dressing.beacons;
        for end in 1..=2 {
            if last > 0 {
                services::delete_beacon(place, &beacon(last, end))?;
            }
        }
        self.dressing.beacons += 1;
        let make = |end, to: &EndProbe| {
            services::beacon(place, &beacon(last + 1, end), (to.address, PORT).into())
        };
        Ok([make(1, &server)?, make(2, &client)?])
    }

    /// A path between nodes, or one within a node where there is no other.
    fn crossing(&self) -> Result<&ClusterPath, ClusterError> {
        let mut paths = self.first.values();
        let crossing = paths.clone().find(|path| path.crosses_nodes());
        let unmade = || TargetError::Failed("no path stands to try services on".to_owned());
        Ok(crossing.or_else(|| paths.next()).ok_or_else(unmade)?)
    }

    /// Waits until a connection to a beacon gets through.
    fn until_answered(
        &self,
        from: &EndProbe,
        beacon: SocketAddr,
        what: &str,
        limit: Duration,
    ) -> Result<(), ClusterError> {
        let what = format!("writing {what} on node {}", from.node);
        until_right(&self.session, &what, limit, || {
            let refused = from.observer.connect(beacon, TRY)?;
            Ok(refused.map(|why| {
                format!(
                    "{beacon} is the service that was made last, and a connection to it does not \
                     get through ({why}); is the node's proxy, such as kube-proxy, well, and what \
                     does it log?"
                )
            }))
        })
    }

    fn remove_policies(
        &mut self,
        place: RunPlace<'_>,
        limit: Duration,
    ) -> Result<Took, ClusterError> {
        let started = Instant::now();
        policies::delete(place)?;
        let made = started.elapsed();
        let what = "forgetting policies";
        self.until_enforced(what, Selected::Ours, limit, ClusterEnforcement::check_bare)?;
        self.dressing.has_policies = false;
        Ok(Took::since(started, made))
    }

    fn make_policies(
        &mut self,
        place: RunPlace<'_>,
        wanted: &ClusterDressing,
        limit: Duration,
    ) -> Result<Took, ClusterError> {
        let policies = wanted.policies;
        let started = Instant::now();
        self.dressing.has_policies = true;
        policies::apply(place, &policies, wanted.shape.family)?;
        let made = started.elapsed();
        let what = format!("enforcing {} policies", policies.count);
        self.until_enforced(&what, policies.selects, limit, ClusterEnforcement::check)?;
        Ok(Took::since(started, made))
    }

    /// Waits until connections get through, or do not, as they should on all paths.
    fn until_enforced(
        &self,
        what: &str,
        selects: Selected,
        limit: Duration,
        check: fn(&ClusterEnforcement) -> Result<Option<String>, TargetError>,
    ) -> Result<(), ClusterError> {
        let paths = self.first.values();
        let tried = paths.map(|path| self.enforcement(path, selects));
        let tried: Vec<ClusterEnforcement> = tried.collect::<Result<_, _>>()?;
        tried
            .iter()
            .try_for_each(|it| until_right(&self.session, what, limit, || check(it)))
    }

    /// Connections that show whether policies on these pods act.
    fn enforcement(
        &self,
        path: &ClusterPath,
        selects: Selected,
    ) -> Result<ClusterEnforcement, ClusterError> {
        let mut enforcement = path.enforcement(selects == Selected::Ours);
        if self.wardrobe.has_others {
            let site = self.site(Seat::Beside, path.family(), PORT)?;
            let observer = self.observers.at(&site)?;
            let address = (site.address(), PORT).into();
            let is_guarded = selects == Selected::Others;
            enforcement.attempt(site.name(), observer, address, is_guarded);
        }
        Ok(enforcement)
    }

    /// The path of a treatment under what is laid on the nodes.
    ///
    /// # Errors
    ///
    /// Something else is.
    pub(super) fn dressed(
        &self,
        path: ClusterPath,
        treatment: &Treatment,
    ) -> Result<ClusterPath, TargetError> {
        if !self.is_dressed_for(treatment) {
            return Err(TargetError::Failed(format!(
                "the services and policies of {} do not stand",
                treatment.label
            )));
        }
        let policies = treatment.scene.policies;
        if policies.is_none() {
            return Ok(path);
        }
        let enforcement = self.enforcement(&path, policies.selects)?;
        Ok(path.guarded(enforcement))
    }

    /// Refuses a proxy that the cluster does not have.
    fn check_proxy(&self, scene: &Scene) -> Result<(), TargetError> {
        let wanted = scene.services.proxy;
        if scene.services.is_none() || wanted == ServiceProxy::Own {
            return Ok(());
        }
        let mode = proxy_mode::of_services(&self.session, &self.first)?;
        match other_proxy(wanted, mode.as_deref()) {
            None => Ok(()),
            Some(other) => Err(TargetError::Unsupported {
                what: format!("proxy `{}`", wanted.as_str()),
                needs: format!("a cluster with that; {other}: proxy \"own\" is what it has"),
            }),
        }
    }
}

/// What a beacon is called, of the two that were made at a time.
fn beacon(number: u32, end: u32) -> String {
    format!("beacon-{number}-{end}")
}

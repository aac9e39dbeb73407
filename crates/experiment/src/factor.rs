//! The factors of a scene: one row of one table each.
//!
//! Keys of `[factors]`, flags, labels, columns of CSV and JSON, what a target is
//! asked whether it supports, and what two treatments must share to be compared
//! follow from these rows.

mod label;
mod neighbours;
mod path;
mod policies;
mod row;
mod services;

use crate::Scene;
pub use row::{Factor, LevelSyntax, WrittenLevel};

/// All factors of a scene, in the order of labels and columns.
pub const FACTORS: &[Factor] = &[
    path::NETWORK,
    path::PATH,
    path::BACKENDS,
    path::PLANTED,
    path::SETTINGS,
    path::PLACEMENT,
    path::FAMILY,
    services::SERVICES,
    services::ENDPOINTS,
    services::PROXY,
    services::POSITION,
    policies::POLICIES,
    policies::POLICY_POSITION,
    policies::SELECTS,
    policies::MEMBERS,
    policies::PEERS,
    policies::DIRECTION,
    policies::ENFORCER,
    neighbours::NEIGHBOURS,
    neighbours::SHARE,
    neighbours::PAIRS,
];

impl Factor {
    /// The level of a scene, unless it is the default.
    pub fn departs(&self, scene: &Scene) -> Option<String> {
        let level = (self.level)(scene);
        (level != (self.level)(&Scene::default())).then_some(level)
    }

    /// The levels of all other factors, as labels show them: two scenes for which they
    /// are equal differ in this one alone. The network is there without what its word
    /// says of factors that have a row of their own.
    pub fn others(&self, scene: &Scene) -> Vec<String> {
        let others = FACTORS.iter().filter(|one| one.name != self.name);
        let label = |one: &Factor| match one.name {
            "network" => scene.network.clone(),
            _ => (one.label)(scene),
        };
        others.map(label).collect()
    }
}

/// Keys of `[factors]` that concern the scene.
pub(crate) fn keys() -> Vec<&'static str> {
    let keys = FACTORS.iter().filter(|factor| factor.is_key());
    keys.map(|factor| factor.name).collect()
}

/// The level of a scene as files write it; `None` for a factor that does not exist.
pub fn level(scene: &Scene, factor: &str) -> Option<String> {
    let found = FACTORS.iter().find(|one| one.name == factor)?;
    Some((found.level)(scene))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_planted_in_a_network_is_no_other_network() {
        let planted = |network: &str, planted_ns| Scene {
            planted_ns,
            ..Scene::of(network)
        };
        let factor = FACTORS.iter().find(|it| it.name == "planted").unwrap();
        let [none, some] = [0, 2_000].map(|ns| planted("host", ns));
        assert_eq!(factor.others(&none), factor.others(&some));
        assert_ne!(factor.others(&none), factor.others(&planted("vxlan", 0)));
        assert_eq!((factor.number)(&some), Some(2_000.0));
        let network = &FACTORS[0];
        assert_eq!(network.name, "network");
        assert_ne!(network.others(&none), network.others(&some));
    }

    #[test]
    fn what_has_numbers_says_what_one_more_is() {
        let scene = Scene::default();
        for factor in FACTORS {
            let has_number = (factor.number)(&scene).is_some();
            assert!(!has_number || !factor.one.is_empty(), "{}", factor.name);
        }
    }
}

//! What is looked into: networks that flags name, or those of a run.

use plumbline_experiment::{Asked, Family, Plan, Scene, flagged_scene_like};
use plumbline_harness::Target;
use plumbline_report::warning;

use crate::error::XrayError;

/// A scene that is looked into.
#[derive(Clone, Debug)]
pub struct NamedScene {
    /// What it is called in what is found.
    pub name: String,
    /// What requests go through.
    pub scene: Scene,
}

impl NamedScene {
    /// A network as these flags of a scene describe it.
    fn flagged(like: &Scene, flags: &[(&str, String)]) -> Result<Self, XrayError> {
        let scene = flagged_scene_like(like, flags);
        let scene = scene.map_err(|error| XrayError::Refused(error.to_string()))?;
        Ok(Self {
            name: scene.name().into_owned(),
            scene,
        })
    }

    /// The networks of these words, each as the flags of a scene describe it; `say` hears what
    /// is left out.
    ///
    /// # Errors
    ///
    /// [`XrayError::Refused`] for a word that is no network, and flags that describe no scene.
    pub fn named(
        words: &[String],
        flags: &[(&str, String)],
        target: &mut dyn Target,
        say: &dyn Fn(&str),
    ) -> Result<Vec<Self>, XrayError> {
        let mut subjects = Vec::new();
        let mut said = Vec::new();
        for word in words {
            let found = target.scenes(&Asked::network(word), &[Family::V4], &mut said);
            for scene in found.map_err(XrayError::Refused)? {
                subjects.push(Self::flagged(&scene, flags)?);
            }
        }
        for warning in &said {
            say(&warning::text(warning));
        }
        Ok(subjects)
    }

    /// What the treatments of a run compare, each scene once, a baseline first. Copies are the
    /// same network again and left out, and so is what works beside a path.
    pub fn of_plan(plan: &Plan) -> Vec<Self> {
        let measured = plan.treatments.len() - plan.controls;
        let mut treatments: Vec<_> = plan.treatments[..measured].iter().collect();
        treatments.sort_by_key(|it| it.baseline.is_some());
        let mut subjects: Vec<Self> = Vec::new();
        for treatment in treatments {
            let is_another = subjects.iter().all(|it| it.name != treatment.label);
            if is_another && treatment.copy == 1 && treatment.scene.neighbours.is_none() {
                subjects.push(Self {
                    name: treatment.label.clone(),
                    scene: treatment.scene.clone(),
                });
            }
        }
        subjects
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use plumbline_record::RunDirectory;

    use super::*;

    #[test]
    fn a_run_is_looked_into_once_for_each_scene_a_baseline_first() {
        let recorded = Path::new("../report/tests/older/tour");
        let mut plan = RunDirectory::read(recorded).unwrap().0.plan;
        let names = |plan: &Plan| {
            let subjects = NamedScene::of_plan(plan);
            subjects.into_iter().map(|it| it.name).collect::<Vec<_>>()
        };
        assert_eq!(plan.treatments.len(), 6);
        assert_eq!(names(&plan), ["host", "routed"]);
        plan.treatments.reverse();
        assert_eq!(names(&plan), ["host", "routed"]);
        for treatment in plan.treatments.iter_mut().filter(|it| it.label == "routed") {
            treatment.copy = 2;
        }
        assert_eq!(names(&plan), ["host"]);
    }
}

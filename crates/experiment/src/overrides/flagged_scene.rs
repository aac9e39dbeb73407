//! A scene that flags describe, without an experiment.

use super::assignment::Assignment;
use crate::section::FileSection;
use crate::tree::SectionTable;
use crate::{Scene, SpecError, spec};

/// A network and what was typed for flags of [`Flag::of_scene`](super::Flag::of_scene),
/// each with one level.
///
/// # Errors
///
/// Levels that are not possible, and those of something that the scene does not have.
pub fn flagged_scene(network: &str, typed: &[(&str, String)]) -> Result<Scene, SpecError> {
    flagged_scene_like(&Scene::of(network), typed)
}

/// As [`flagged_scene`], with the network and the path of another scene.
///
/// # Errors
///
/// As [`flagged_scene`].
pub fn flagged_scene_like(like: &Scene, typed: &[(&str, String)]) -> Result<Scene, SpecError> {
    let mut table = SectionTable::new();
    for (flag, value) in typed {
        let assignment = Assignment::from_flag(&format!("--{flag}"), flag, value)?;
        table.insert((*flag).to_owned(), assignment.entry());
    }
    let title = "the flags of a scene";
    let table = &table;
    let settings = spec::settings(&FileSection { title, table })?;
    let [setting] = &settings[..] else {
        let problem = "this describes several scenes";
        return Err(SpecError::nowhere(problem, "give each flag one value"));
    };
    Ok(setting.scene.with_network_of(like))
}

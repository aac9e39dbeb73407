//! The lab as a place.

use plumbline_experiment::{Asked, Family, Link, Scene, Wanted};
use plumbline_lab::Lab;
use plumbline_lab::catalogue::{USUAL, find};
use plumbline_lab::network::cni;
use plumbline_record::Warning;

use super::Place;

impl Place for Lab {
    fn scenes(
        &self,
        asked: &Asked<'_>,
        families: &[Family],
        said: &mut Vec<Warning>,
    ) -> Result<Vec<Scene>, String> {
        let belongs: fn(&str) -> bool = match asked.network {
            Wanted::All => |_| true,
            Wanted::Usual => |name| USUAL.contains(&name),
            // A file is read when the lab is built.
            Wanted::Named(file) if file.starts_with(cni::PREFIX) => {
                return Ok(vec![Scene::of(file)]);
            }
            Wanted::Named(word) => return Ok(vec![Scene::of(named(word, said)?)]),
        };
        let mut scenes = Vec::new();
        let listed = plumbline_lab::list().map_err(|e| e.to_string())?;
        for listing in listed.into_iter().filter(|one| belongs(one.name)) {
            let network = listing.name.to_owned();
            match listing.needs_for(families) {
                None => scenes.push(Scene::of(network)),
                Some(needs) => said.push(Warning::Unsupported { network, needs }),
            }
        }
        Ok(scenes)
    }

    fn use_link(&mut self, link: Link) -> anyhow::Result<()> {
        Lab::use_link(self, link);
        Ok(())
    }
}

/// The network of that name, or that the system of that name uses.
fn named(word: &str, said: &mut Vec<Warning>) -> Result<String, String> {
    let network = find(word).map_err(|e| e.to_string())?;
    let name = network.about().name.to_owned();
    if word != name {
        said.push(Warning::StandsFor {
            alias: word.to_owned(),
            network: name.clone(),
        });
    }
    Ok(name)
}

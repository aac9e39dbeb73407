//! The lab as a place.

use plumbline_experiment::{Family, Link};
use plumbline_lab::Lab;
use plumbline_lab::catalogue::{USUAL, find};
use plumbline_lab::network::cni;
use plumbline_record::Warning;

use super::Place;

impl Place for Lab {
    fn networks(
        &self,
        word: &str,
        families: &[Family],
        said: &mut Vec<Warning>,
    ) -> Result<Vec<String>, String> {
        // A file is read when the lab is built.
        if word.starts_with(cni::PREFIX) {
            return Ok(vec![word.to_owned()]);
        }
        let belongs: fn(&str) -> bool = match word {
            "all" => |_| true,
            "usual" => |name| USUAL.contains(&name),
            _ => return Ok(vec![named(word, said)?]),
        };
        let mut names = Vec::new();
        let listed = plumbline_lab::list().map_err(|e| e.to_string())?;
        for listing in listed.into_iter().filter(|one| belongs(one.name)) {
            let network = listing.name.to_owned();
            match listing.needs_for(families) {
                None => names.push(network),
                Some(needs) => said.push(Warning::Unsupported { network, needs }),
            }
        }
        Ok(names)
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

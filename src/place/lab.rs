//! The lab as a place.

use std::sync::atomic::AtomicBool;

use plumbline_experiment::{Family, Link};
use plumbline_lab::Lab;
use plumbline_lab::network::{USUAL, cni, find};
use plumbline_record::{Floor, Warning};

use super::{Cpus, Place};

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

    /// The sender and the receiver on CPUs of their own where there are two.
    fn cpus(&self) -> Cpus {
        let cpus = plumbline_sys::cpu::allowed().unwrap_or_default();
        match (cpus.first(), cpus.last()) {
            (Some(&first), Some(&last)) if first != last => Cpus {
                client: vec![first],
                server: vec![last],
            },
            _ => Cpus::default(),
        }
    }

    fn floor(&mut self, interrupted: &AtomicBool) -> anyhow::Result<Option<Floor>> {
        let Cpus { client, server } = self.cpus();
        Ok(plumbline_engine::floor(&client, &server, interrupted)?)
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

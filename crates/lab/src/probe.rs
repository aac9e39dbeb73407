//! Whether networks can be built here.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::error::LabError;
use crate::need::{Need, ScratchNamespace, VETH};
use crate::network::Network;

/// Answers whether networks can be built here. Each driver is tried once.
#[derive(Default)]
pub(crate) struct Probe {
    /// What is missing, by the remedy of each need that was tried.
    known: RefCell<BTreeMap<String, Option<String>>>,
}

impl Probe {
    /// What the network lacks; `None` when it can be built.
    pub(crate) fn missing(&self, network: &dyn Network) -> Result<Option<String>, LabError> {
        match self.lacking(network.about().needs)? {
            Some(missing) => Ok(Some(missing)),
            None => network.lacks(),
        }
    }

    /// The first of these that is lacking; `None` when all are there.
    pub(crate) fn lacking(&self, needs: &[&'static Need]) -> Result<Option<String>, LabError> {
        let mut known = self.known.borrow_mut();
        let is_new = |need: &&&Need| !known.contains_key(&need.remedy());
        let new: Vec<&Need> = needs.iter().filter(is_new).copied().collect();
        if !new.is_empty() {
            let bench = ScratchNamespace::set_up()?;
            for need in new {
                let verdict = match &bench {
                    Some(bench) => need.lacks(bench)?,
                    None => Some(VETH.remedy()),
                };
                known.insert(need.remedy(), verdict);
            }
        }
        Ok(needs.iter().find_map(|need| known[&need.remedy()].clone()))
    }
}

//! The place where an experiment runs, as it was asked for.

mod hosts;
#[cfg(feature = "kubernetes")]
mod kubernetes;
mod lab;

use std::path::Path;

use plumbline_experiment::{Asked, Experiment, Family, Link, Scene, Treatment, TreatmentId};
use plumbline_harness::{Fleet, Target};
use plumbline_lab::{Lab, LabOptions};
use plumbline_record::Warning;

use crate::cli::{RunArgs, TargetArgs, TargetKind};
use crate::command::BadUsage;

/// A target, with what a command has to know of it beside what the harness does.
pub(crate) trait Place: Target {
    /// The scenes that an experiment asks for, in these IP versions; only their
    /// networks count. What cannot be had here is left out of `all` and `usual`,
    /// with a warning; the name of a system is said to be one.
    ///
    /// # Errors
    ///
    /// A sentence, when the place knows no such network.
    fn scenes(
        &self,
        asked: &Asked<'_>,
        families: &[Family],
        said: &mut Vec<Warning>,
    ) -> Result<Vec<Scene>, String>;

    /// Takes the link that the plan asks for, before any path is made. By
    /// default the link is what it is, and to ask for another is an error.
    ///
    /// # Errors
    ///
    /// A link that this place cannot make.
    fn use_link(&mut self, link: Link) -> anyhow::Result<()> {
        if link.is_default() {
            return Ok(());
        }
        Err(BadUsage(format!(
            "[link] shapes the link between the nodes of a lab; the target {} has its own, which \
             Plumbline does not touch: leave [link] out, or use --target lab",
            self.name()
        ))
        .into())
    }

    /// The place as one of many nodes; `None` where a path has two ends and there
    /// is no choice of them.
    fn fleet(&self) -> Option<&dyn Fleet> {
        None
    }

    /// Makes every path, so that what cannot be built is an error before the
    /// first trial and not in the middle. `order` is the order in which the first
    /// trials want them.
    ///
    /// # Errors
    ///
    /// Whatever the target says of the first path that cannot be made.
    fn build(&mut self, treatments: &[Treatment], order: &[TreatmentId]) -> anyhow::Result<()> {
        let _ = order;
        self.validate(treatments)?;
        for treatment in treatments {
            self.path(treatment)?;
        }
        Ok(())
    }

    /// What treatments have to share to stay together in a block, where going
    /// from one to another costs much.
    fn kept_together(&self) -> Option<fn(&Treatment) -> String> {
        None
    }

    /// Told where the run directory is, once it is.
    ///
    /// # Errors
    ///
    /// What belongs there cannot be put there.
    fn run_directory(&mut self, _path: &Path) -> anyhow::Result<()> {
        Ok(())
    }
}

/// What kind of place was asked for.
///
/// # Errors
///
/// Flags of a place that was not.
pub(crate) fn kind(
    args: &TargetArgs,
    experiment: Option<&Experiment>,
) -> Result<TargetKind, BadUsage> {
    let kind = args.kind(experiment.map_or("", Experiment::target));
    let given = [
        (TargetKind::Lab, args.lab.given()),
        (TargetKind::Kubernetes, args.cluster.given()),
        (TargetKind::Hosts, args.hosts.given()),
    ];
    for (of, flag) in given {
        if let (true, Some(flag)) = (of != kind, flag) {
            let name = of.name();
            return Err(BadUsage(format!("{flag}: say --target {name} too")));
        }
    }
    match (kind, args.pairing.given()) {
        (TargetKind::Lab, Some(flag)) => Err(BadUsage(format!(
            "{flag}: a lab has two nodes; say --target kubernetes or --target hosts too"
        ))),
        _ => Ok(kind),
    }
}

/// The place of that kind, with nothing done in it yet.
///
/// To be called before the first thread: a process enters a user namespace,
/// which the lab needs, alone or not at all.
pub(crate) fn pick(
    kind: TargetKind,
    run: &RunArgs,
    experiment: Option<&Experiment>,
) -> anyhow::Result<Box<dyn Place>> {
    let args = &run.target;
    match kind {
        TargetKind::Lab => {
            plumbline_sys::namespace::enter_private()?;
            let options = LabOptions::with_this_program()?.cni_directories(&args.lab.cni_bin);
            Ok(Box::new(Lab::new(options)))
        }
        TargetKind::Hosts => hosts::pick(&args.hosts, &args.pairing, experiment),
        #[cfg(feature = "kubernetes")]
        TargetKind::Kubernetes => kubernetes::pick(run, experiment),
        #[cfg(not(feature = "kubernetes"))]
        TargetKind::Kubernetes => Err(BadUsage(
            "--target kubernetes: this program was built without clusters; build it with \
             --features kubernetes"
                .to_owned(),
        )
        .into()),
    }
}

//! `plumbline doctor`: what will disturb the numbers here, or what is wrong with a path, and
//! the remedy.

use std::process::ExitCode;

use plumbline_doctor::{Finding, PathTrials, examine, examine_path};
use plumbline_experiment::flagged_scene;
use plumbline_harness::Path;
use plumbline_hosts::DEFAULT_NETWORK;
use plumbline_session::{on_path, path_experiment};

use super::{kernel, lab};
use crate::cli::{DoctorArgs, TargetKind};
use crate::command::{print, print_json, refused};
use crate::target::{self, OfClusters};

pub(crate) fn run(mut args: DoctorArgs) -> anyhow::Result<ExitCode> {
    if kernel::is_elsewhere(args.target.lab.kernel) {
        return kernel::run_inside(None);
    }
    // Looked at first, while this process has no thread and its own namespaces.
    let findings = findings(&mut args)?;
    match args.json {
        true => print_json(&findings)?,
        false => print(&findings.iter().map(Finding::to_string).collect::<String>())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn findings(args: &mut DoctorArgs) -> anyhow::Result<Vec<Finding>> {
    let kind = target::kind(&args.target, None)?;
    let in_lab = &args.target.lab;
    if args.target.cluster.allow_tuning || in_lab.awake || in_lab.tune {
        return refused("--awake, --tune and --allow-tuning are of runs: doctor sets nothing");
    }
    let cni_bin = &in_lab.cni_bin;
    let Some(words) = args.path.take() else {
        return match args.flags.0.is_empty() && args.target.target.is_none() && cni_bin.is_empty() {
            true => Ok(examine()),
            false => refused("these flags are of a path: say --path too"),
        };
    };
    let ends = <[String; 2]>::try_from(words.clone()).ok();
    let word = if words.len() == 1 { &*words[0] } else { "" };
    let trials = PathTrials {
        of_this_kernel: kind == TargetKind::Lab,
        typed: std::env::args().skip(1).collect(),
        ..args.trials
    };
    if trials.tracing && kind != TargetKind::Kubernetes {
        return refused("--allow-tracing is of a cluster: say --target kubernetes too");
    }
    let examined = |path: &dyn Path| examine_path(path, &trials);
    if kind == TargetKind::Lab {
        if word.is_empty() {
            return refused("the path of which network? Such as --path vxlan");
        }
        let scene = flagged_scene(word, &args.flags.0)?;
        if scene.is_dressed() {
            return refused(
                "--path looks at a path as it is: leave out services, policies and neighbours",
            );
        }
        return lab::on(&scene, cni_bin, args.fault, |it, _| Ok(examined(it)?));
    }
    if args.fault.is_some() || trials.remedies {
        return refused("plant faults, and try remedies, in a lab only: leave out --target");
    }
    let network = match (word, kind) {
        ("", TargetKind::Kubernetes) => "pod",
        ("", _) => DEFAULT_NETWORK,
        (word, _) => word,
    };
    if kind == TargetKind::Hosts {
        args.target
            .hosts
            .host
            .extend(ends.clone().into_iter().flatten());
    }
    let experiment = path_experiment(network, &args.flags.0)?;
    let of_clusters = OfClusters {
        tracing: trials.tracing,
        between: ends,
        ..OfClusters::default()
    };
    let mut target = target::pick(kind, &args.target, Some(&experiment), of_clusters)?;
    Ok(on_path(experiment, &mut *target, examined)?)
}

//! What `plumbline gate` asks of an experiment: a base and a head in place of its networks,
//! limits, a budget of time, and to end as soon as the limits are decided.
//!
//! The run is one as any other. What it showed is judged by
//! [`decision`](plumbline_report::decision); [`Against`] says what this and every other run is
//! held against when it has ended.

mod against;

use std::path::{Path, PathBuf};

use clap::Args;
use plumbline_experiment::{Experiment, SpecError};
use plumbline_report::compare::{LimitTextError, parse_limits};
use plumbline_report::decision::{Decision, junit, markdown};

pub use against::{Against, Judged};

/// What the name of a network begins with that plugins of CNI make.
const CNI: &str = "cni:";

/// The flags of `plumbline gate` beside those of `run`.
#[derive(Debug, Args)]
#[command(next_help_heading = "The gate")]
pub struct GateArgs {
    /// Network as it was, such as main; cni:FILE with plugins of your own
    #[arg(long, value_name = "NETWORK", requires = "head")]
    pub base: Option<String>,
    /// Network as a change makes it
    #[arg(long, value_name = "NETWORK", requires = "base")]
    pub head: Option<String>,
    /// Directory with the plugins of CNI as they were, for --network cni:FILE; those that it
    /// lacks are taken from --cni-bin
    #[arg(
        long,
        value_name = "DIR",
        requires = "head_cni_bin",
        conflicts_with = "base"
    )]
    pub base_cni_bin: Option<PathBuf>,
    /// Directory with the plugins as a change makes them
    #[arg(long, value_name = "DIR", requires = "base_cni_bin")]
    pub head_cni_bin: Option<PathBuf>,
    /// Largest overhead of the head that passes, in place of those of the experiment
    #[arg(long, value_name = "METRIC=SHARE", value_delimiter = ',')]
    pub limit: Vec<String>,
    /// Also write a table for a pull request
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Also write JUnit XML, which CI services show as tests
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}

/// What is wrong with the command line or the experiment.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum GateError {
    #[error(transparent)]
    Limit(#[from] LimitTextError),
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error(
        "name what to compare: --base NETWORK --head NETWORK, or --base-cni-bin DIR \
         --head-cni-bin DIR --network cni:FILE"
    )]
    NoHead,
    #[error("--network: the networks are those of --base and --head; leave it out")]
    NetworkTwice,
    #[error("--baseline: it is the network of --base; leave it out")]
    BaselineTwice,
    #[error(
        "--base-cni-bin: directories are compared on one list of plugins; say --network cni:FILE"
    )]
    NoList,
}

impl GateArgs {
    /// Has an experiment compare the head with its base by the limits, and end when these
    /// are decided. `network` and `baseline` are what was typed for these flags.
    ///
    /// # Errors
    ///
    /// Flags that do not belong together, and limits that cannot be meant.
    pub fn ask(
        &self,
        experiment: &mut Experiment,
        [network, baseline]: [Option<&str>; 2],
    ) -> Result<(), GateError> {
        let [base, head] = self.networks(network)?;
        if baseline.is_some() {
            return Err(GateError::BaselineTwice);
        }
        experiment.set_flag("network", &format!("{base},{head}"))?;
        experiment.set_flag("baseline", &base)?;
        let limits = parse_limits(&self.limit)?;
        if !limits.is_empty() {
            experiment.limit_to(&limits)?;
        }
        experiment.set("design.sequential=on")?;
        Ok(())
    }

    /// The words for base and head.
    fn networks(&self, network: Option<&str>) -> Result<[String; 2], GateError> {
        let with = |list: &str, directory: &Path| format!("{list}@{}", directory.display());
        match (
            &self.base,
            &self.head,
            &self.base_cni_bin,
            &self.head_cni_bin,
        ) {
            (Some(base), Some(head), _, _) => match network {
                None => Ok([base.clone(), head.clone()]),
                Some(_) => Err(GateError::NetworkTwice),
            },
            (_, _, Some(base), Some(head)) => {
                let is_list = |word: &&str| word.starts_with(CNI) && !word.contains(',');
                let list = network.filter(is_list).ok_or(GateError::NoList)?;
                Ok([with(list, base), with(list, head)])
            }
            _ => Err(GateError::NoHead),
        }
    }

    /// Why these flags make no sense for a run that is resumed, or in a guest's kernel.
    pub fn refusal(&self, is_resumed: bool, is_in_guest: bool) -> Option<&'static str> {
        let networks = self.base.is_some() || self.base_cni_bin.is_some();
        let asks = networks || !self.limit.is_empty();
        let writes = self.markdown.is_some() || self.junit.is_some();
        if is_resumed && asks {
            return Some(
                "--resume goes on with a gate as it was planned: leave networks and limits out",
            );
        }
        (is_in_guest && writes).then_some(
            "--markdown and --junit are written outside of the run's directory, which --kernel \
             uml cannot do: leave them out",
        )
    }

    /// The files that were asked for, each with its text.
    fn files(&self, decision: &Decision) -> Vec<(&Path, String)> {
        let markdown = self.markdown.as_deref().map(|it| (it, markdown(decision)));
        let junit = self.junit.as_deref().map(|it| (it, junit(decision)));
        markdown.into_iter().chain(junit).collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use plumbline_experiment::{Plan, Scene, ready_made};

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        gate: GateArgs,
        /// One of the flags of experiments.
        #[arg(long)]
        budget: Option<String>,
        #[arg(long)]
        baseline: Option<String>,
    }

    /// The plan of what was typed after `plumbline gate`.
    fn plan(typed: &str, network: Option<&str>) -> Result<Plan, String> {
        let words = ["gate"].into_iter().chain(typed.split_whitespace());
        let typed = Typed::try_parse_from(words).map_err(|error| error.to_string())?;
        let mut ready = ready_made().iter();
        let (_, text) = ready.find(|(name, _)| *name == "gate").unwrap();
        let mut experiment = Experiment::parse(text, "gate.toml").unwrap();
        if let Some(budget) = &typed.budget {
            let set = experiment.set_flag("budget", budget);
            set.map_err(|error| error.to_string())?;
        }
        let asked = typed
            .gate
            .ask(&mut experiment, [network, typed.baseline.as_deref()]);
        asked.map_err(|error| error.to_string())?;
        let scenes =
            |asked: &plumbline_experiment::Asked<'_>| Ok(vec![Scene::of(asked.network.word())]);
        let plan = experiment.resolve(1, &scenes);
        plan.map_err(|error| error.to_string())
    }

    fn labels(plan: &Plan) -> Vec<(&str, Option<usize>)> {
        let treatments = plan.treatments.iter();
        treatments.map(|it| (&*it.label, it.baseline)).collect()
    }

    #[test]
    fn base_and_head_are_the_networks_and_the_limits_those_that_were_typed() {
        let typed = "--base main --head pr --limit p50=3%,cpu_per_request=5% --limit p99=0.1";
        let plan = plan(&format!("{typed} --budget 7m"), None).unwrap();
        assert_eq!(labels(&plan), [("main", None), ("pr", Some(0))]);
        let limits: Vec<_> = plan
            .limits
            .iter()
            .map(|(it, share)| (&**it, *share))
            .collect();
        let expected = [("cpu_per_request", 0.05), ("p50", 0.03), ("p99", 0.1)];
        assert_eq!(limits, expected);
        let sequential = plan.sequential.unwrap();
        assert_eq!(sequential.budget_ns, Some(420_000_000_000));
        // By these, crates/stats/tests/noise/gate.rs simulates how often gates are wrong.
        assert_eq!(sequential.looks[..5], [8, 12, 18, 27, 41]);
    }

    #[test]
    fn without_limits_those_of_the_experiment_count() {
        let plan = plan("--base main --head pr", None).unwrap();
        assert!(plan.limits.contains_key("p50"), "{:?}", plan.limits);
        assert!(plan.sequential.is_some());
    }

    #[test]
    fn two_directories_of_plugins_are_two_networks() {
        let typed = "--base-cni-bin ./main --head-cni-bin ./pr";
        let made = plan(typed, Some("cni:bridge.conflist")).unwrap();
        let [base, head] = ["cni:bridge.conflist@./main", "cni:bridge.conflist@./pr"];
        assert_eq!(labels(&made), [(base, None), (head, Some(0))]);
        for network in [None, Some("vxlan"), Some("cni:a,cni:b")] {
            assert!(
                plan(typed, network)
                    .unwrap_err()
                    .contains("--network cni:FILE")
            );
        }
    }

    #[test]
    fn a_head_that_is_its_base_is_compared_with_a_copy() {
        let plan = plan("--base main --head main", None).unwrap();
        assert_eq!(labels(&plan), [("main", None), ("main#2", Some(0))]);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let refused = |typed, says: &str| {
            let error = plan(typed, None).unwrap_err();
            assert!(error.contains(says), "{typed}: {error}");
        };
        refused("", "--base NETWORK --head NETWORK");
        refused("--base main", "--head");
        refused("--head-cni-bin pr", "--base-cni-bin");
        refused("--base a --head b --limit p50", "METRIC=SHARE");
        refused("--base a --head b --limit throughput=3%", "no workload");
        refused("--base a --head b --budget soon", "budget");
        refused("--base a --head b --baseline c", "leave it out");
        refused("--base a --head b --limit p50=3%,p50=5%", "a limit already");
        let both = plan("--base a --head b", Some("vxlan")).unwrap_err();
        assert!(both.contains("leave it out"), "{both}");
    }
}

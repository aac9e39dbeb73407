//! What a harness asks of the place where it runs.

use std::path::Path as FilePath;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumbline_experiment::{
    Asked, Ends, Family, Link, Placement, Scene, TaskKind, Treatment, TreatmentId,
};
use plumbline_record::{Fingerprint, Floor, IdleSample, SetUp, Warning};

use crate::error::TargetError;
use crate::path::Path;

/// Where the endpoints run; empty for any CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpus {
    /// Numbers of the CPUs of the sender.
    pub client: Vec<usize>,
    /// Numbers of the CPUs of the receiver.
    pub server: Vec<usize>,
}

impl Cpus {
    /// The first of some CPUs for the sender and the last for the receiver; any
    /// CPU where there are not two.
    pub fn apart(cpus: &[usize]) -> Self {
        match cpus {
            [first, .., last] => Self {
                client: vec![*first],
                server: vec![*last],
            },
            _ => Self::default(),
        }
    }
}

/// Which levels of a factor a target has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Levels {
    /// Only the one that holds where an experiment says nothing.
    Default,
    /// That one and these.
    These(&'static [&'static str]),
    /// Any; the target itself refuses what it cannot make, and says why.
    Any,
}

/// What a run is going to ask of a target.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'a> {
    /// All treatments of the plan.
    pub treatments: &'a [Treatment],
    /// The treatments of the first trials, in their order.
    pub first: &'a [TreatmentId],
    /// The link between the nodes, where the target makes it.
    pub link: Link,
}

/// A place where experiments run: some nodes, and the networks between them. A
/// pair of nodes is the smallest one.
///
/// Nodes are known by their position in [`nodes`](Self::nodes), which does not
/// change after [`prepare`](Self::prepare). The order of calls is `scenes`,
/// `prepare`, then what tells of the target, then `begin_block`, `ready`, `stage`
/// and `idle_sample` as often as the plan wants, and `teardown` at the end,
/// whatever failed before.
pub trait Target: Sync {
    /// `lab`, `kubernetes` or `hosts`.
    fn name(&self) -> &'static str;

    /// The scenes that an experiment asks for, in these IP versions; only their
    /// networks count. What cannot be had here is left out of `all` and `usual`, with
    /// a warning in `said`; it is also said when a word was the name of a system. May
    /// look at the target, and remember what was asked.
    ///
    /// # Errors
    ///
    /// A sentence, when the target has no such network.
    fn scenes(
        &mut self,
        asked: &Asked<'_>,
        families: &[Family],
        said: &mut Vec<Warning>,
    ) -> Result<Vec<Scene>, String>;

    /// What it takes, beyond what there is, to set something differently on a network:
    /// `variant` is a whole scene with what is to be set; `None` where nothing is missing.
    /// May try it.
    ///
    /// # Errors
    ///
    /// A sentence, when the target does not set anything on its networks at all.
    fn lacks(&mut self, _variant: &Scene) -> Result<Option<String>, String> {
        Err(format!(
            "the target {} sets nothing on its networks: use --target lab, whose networks are \
             the program's own, or --target kubernetes for what pods set for themselves",
            self.name()
        ))
    }

    /// Which levels of a factor it has, beside the default. [`refuse`](crate::refuse)
    /// refuses all others.
    fn supports(&self, _factor: &str) -> Levels {
        Levels::Default
    }

    /// Whether tasks of a kind can be done on its paths: [`Path::programmable`],
    /// [`Path::launch`] and [`Path::start_command`] are for some that are no load. By default only loads can.
    fn does(&self, task: TaskKind) -> bool {
        matches!(task, TaskKind::Load(_))
    }

    /// Whether it makes the link between its nodes, and so can shape it.
    fn shapes_link(&self) -> bool {
        false
    }

    /// Makes everything that the run needs before its first trial, so that what
    /// cannot be had is an error then and not in the middle.
    ///
    /// # Errors
    ///
    /// The first treatment that cannot be staged.
    fn prepare(&mut self, demand: &Demand<'_>) -> Result<(), TargetError>;

    /// Told where the run directory is, once it is.
    ///
    /// # Errors
    ///
    /// What belongs there cannot be put there.
    fn run_directory(&mut self, _path: &FilePath) -> std::io::Result<()> {
        Ok(())
    }

    /// The names of the nodes.
    fn nodes(&self) -> Vec<String>;

    /// Whether any two nodes are one kernel, as namespaces of one machine are.
    fn is_one_kernel(&self) -> bool;

    /// The CPUs that the endpoints are to be held on. By default any.
    fn cpus(&self) -> Cpus {
        Cpus::default()
    }

    /// What the generator measures on `cpus` where there is no network (L-13);
    /// `None` when it was interrupted, or nothing stands to measure on. By default
    /// nothing does.
    ///
    /// # Errors
    ///
    /// A generator that cannot be started.
    fn floor(
        &mut self,
        _cpus: Cpus,
        _interrupted: &AtomicBool,
    ) -> Result<Option<Floor>, TargetError> {
        Ok(None)
    }

    /// The environment (C-13).
    ///
    /// # Errors
    ///
    /// A machine that cannot be looked at.
    fn fingerprint(&mut self) -> Result<Fingerprint, TargetError>;

    /// What to distrust in everything measured here.
    fn warnings(&self) -> Vec<Warning>;

    /// Which of its clusters or pairs of hosts a treatment runs in, by name. Node
    /// 0 of one is another machine than node 0 of the next. By default there is
    /// only one.
    fn site_of(&self, _treatment: &Treatment) -> String {
        String::new()
    }

    /// Whether treatments with one [`site_of`](Self::site_of) have to stay together
    /// in a block, because going from one to the next costs much.
    fn keeps_sites_together(&self) -> bool {
        false
    }

    /// A block begins. What must not outlive a block, such as a cluster that is
    /// made anew for each, may end here. By default nothing does.
    fn begin_block(&mut self, _block: usize) {}

    /// Sees to it that a treatment can be staged on these nodes: brings up what
    /// is not there, replaces what was lost. By default there is nothing to do.
    ///
    /// # Errors
    ///
    /// What some of the nodes, or all of them, cannot be used without. The trials
    /// are tried all the same.
    fn ready(&mut self, _treatment: &Treatment, _nodes: &[usize]) -> Result<(), TargetError> {
        Ok(())
    }

    /// What it took to bring up the place of the last treatment that was made
    /// ready, if that has not been asked before.
    fn set_up(&mut self) -> Option<SetUp> {
        None
    }

    /// Gives the path of a treatment from the first of two nodes to the second;
    /// both are the same node where the treatment wants that. Called from a thread
    /// for each pair; no node is asked for twice at the same time. The paths of
    /// treatments that take turns are given one after the other, and stand together.
    ///
    /// # Errors
    ///
    /// A path that cannot be had.
    fn stage(
        &self,
        treatment: &Treatment,
        ends: Ends,
    ) -> Result<Box<dyn Path + Send + '_>, TargetError>;

    /// Measures the machine under a node without load, for `length`.
    ///
    /// # Errors
    ///
    /// A machine that does not answer.
    fn idle_sample(
        &self,
        treatment: &Treatment,
        node: usize,
        length: Duration,
    ) -> Result<IdleSample, TargetError>;

    /// Whether the two ends of a treatment share a kernel, so that there is one
    /// machine to measure. By default all do.
    fn shares_kernel(&self, _treatment: &Treatment, _ends: Ends) -> bool {
        true
    }

    /// Whether two treatments of one [`site_of`](Self::site_of) may take turns: their
    /// paths can stand and carry load side by side, their senders are on one machine, and
    /// their receivers are on one machine, the same or another. That these machines have
    /// the clocks that this needs is seen to where they take turns: agents on the client
    /// and the server are asked. By default no two may.
    fn can_rotate(&self, _one: &Treatment, _other: &Treatment) -> bool {
        false
    }

    /// Whether a path can stand twice and take turns with its copy, so that baselines get
    /// controls where nobody asked for any (D11). By default it cannot.
    fn has_controls(&self) -> bool {
        false
    }

    /// Whether a treatment that failed is worth another attempt in the same
    /// block. By default every one is.
    fn may_try_again(&self, _treatment: &Treatment) -> bool {
        true
    }

    /// Whether no packet got through the path of a treatment when it was tried, so that
    /// later blocks do without it. By default every one is run in each.
    fn carries_nothing(&self, _treatment: &Treatment) -> bool {
        false
    }

    /// Whether packets were seen to get through the path of a treatment when it was made,
    /// so that it need not be tried again. By default they were not.
    fn has_tried(&self, _treatment: &Treatment) -> bool {
        false
    }

    /// Undoes everything, in reverse, without stopping at an error.
    /// Gives all errors; an empty list is the proof that nothing was left.
    fn teardown(&mut self) -> Vec<TargetError>;
}

/// The nodes of a treatment's two endpoints, given those of its pair.
pub(crate) fn ends_of(treatment: &Treatment, pair: Ends) -> Ends {
    match treatment.scene.placement {
        Placement::CrossNode => pair,
        Placement::SameNode => [pair[0]; 2],
    }
}

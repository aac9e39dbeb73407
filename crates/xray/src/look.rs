//! What `plumbline xray` does: looks into what was asked for, and says what it found.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use plumbline_experiment::Plan;
use plumbline_harness::Target;
use plumbline_lab::Lab;

use crate::account::Xray;
use crate::error::XrayError;
use crate::flags::XrayArgs;
use crate::order::XrayOrder;
use crate::subject::NamedScene;
use crate::survey::{survey, survey_target};

/// What is looked into.
pub enum LookedAt<'a> {
    /// Networks of a lab.
    Lab(&'a mut Lab),
    /// Paths of a cluster that lets programs be loaded into its nodes' kernels.
    Cluster(&'a mut dyn Target),
}

impl LookedAt<'_> {
    fn target(&mut self) -> &mut dyn Target {
        match self {
            Self::Lab(lab) => *lab,
            Self::Cluster(target) => *target,
        }
    }

    fn survey(
        self,
        order: XrayOrder,
        subjects: &[NamedScene],
        interrupted: &AtomicBool,
        say: &dyn Fn(&str),
    ) -> Result<Xray, XrayError> {
        match self {
            Self::Lab(lab) => survey(order, subjects, lab, interrupted, say),
            Self::Cluster(target) => survey_target(order, subjects, target, interrupted, say),
        }
    }

    /// Looks into the networks of a run that has ended, and keeps what it finds in the run's
    /// directory; gives it as text, and the page. `say` hears how far it is.
    ///
    /// # Errors
    ///
    /// As [`survey`](fn@survey), and files that cannot be written.
    pub fn beside(
        self,
        (plan, directory): (&Plan, &Path),
        interrupted: &AtomicBool,
        say: &dyn Fn(&str),
    ) -> Result<(String, PathBuf), XrayError> {
        let subjects = NamedScene::of_plan(plan);
        let order = XrayOrder {
            link: plan.link,
            ..XrayOrder::default()
        };
        let found = self.survey(order, &subjects, interrupted, say)?;
        Ok((found.to_text(), found.keep(directory)?))
    }
}

impl XrayArgs {
    /// Looks into the networks of these flags, each as the flags of a scene describe it; writes
    /// the page where one is asked for, and gives what is to be printed. `say` hears how far
    /// it is.
    ///
    /// # Errors
    ///
    /// As [`survey`](fn@survey) and [`NamedScene::named`], and a page that cannot be written.
    pub fn look(
        &self,
        order: XrayOrder,
        mut at: LookedAt<'_>,
        flags: &[(&str, String)],
        interrupted: &AtomicBool,
        say: &dyn Fn(&str),
    ) -> Result<String, XrayError> {
        let subjects = NamedScene::named(&self.network, flags, at.target(), say)?;
        let found = at.survey(order, &subjects, interrupted, say)?;
        if let Some(file) = &self.html {
            found.write_page(file)?;
        }
        Ok(match self.json {
            true => format!("{:#}\n", found.to_json()),
            false => found.to_text(),
        })
    }
}

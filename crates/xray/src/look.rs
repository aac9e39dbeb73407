//! What `plumbline xray` does: looks into what was asked for, and says what it found.

use std::sync::atomic::AtomicBool;

use plumbline_harness::Target;
use plumbline_lab::Lab;

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

impl XrayArgs {
    /// Looks into the networks of these flags, each as the flags of a scene describe it; writes
    /// the page where one is asked for, and gives what is to be printed. `say` hears how far
    /// it is.
    ///
    /// # Errors
    ///
    /// As [`survey`] and [`NamedScene::named`], and a page that cannot be written.
    pub fn look(
        &self,
        order: XrayOrder,
        at: LookedAt<'_>,
        flags: &[(&str, String)],
        interrupted: &AtomicBool,
        say: &dyn Fn(&str),
    ) -> Result<String, XrayError> {
        let found = match at {
            LookedAt::Lab(lab) => {
                let subjects = NamedScene::named(&self.network, flags, lab, say)?;
                survey(order, &subjects, lab, interrupted, say)?
            }
            LookedAt::Cluster(target) => {
                let subjects = NamedScene::named(&self.network, flags, target, say)?;
                survey_target(order, &subjects, target, interrupted, say)?
            }
        };
        if let Some(file) = &self.html {
            found.write_page(file)?;
        }
        Ok(match self.json {
            true => format!("{:#}\n", found.to_json()),
            false => found.to_text(),
        })
    }
}

//! A run as it is recorded and shown where names stay out of it.

use plumbline_record::{AnonymityError, Pseudonyms, Run, SearchRecord, Trial};

/// The record of a run with pseudonyms.
pub(crate) struct Anonymous {
    names: Pseudonyms,
    pub(crate) run: Run,
    /// All that were kept so far.
    pub(crate) trials: Vec<Trial>,
}

impl Anonymous {
    /// Takes the names out of a run and of the searches before it.
    pub(crate) fn begin(run: &Run, searches: &mut [SearchRecord]) -> Result<Self, AnonymityError> {
        let mut names = Pseudonyms::default();
        let run = names.run(run)?;
        for search in searches {
            *search = names.search(search)?;
        }
        Ok(Self {
            names,
            run,
            trials: Vec::new(),
        })
    }

    /// The next trial without names.
    pub(crate) fn hide(&mut self, trial: &Trial) -> Result<&Trial, AnonymityError> {
        self.trials.push(self.names.trial(trial)?);
        Ok(&self.trials[self.trials.len() - 1])
    }
}

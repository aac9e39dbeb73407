//! An experiment file, as text with places, and what is done with it.

use std::sync::Arc;

use crate::asked::{Wanted, Word};
use crate::keys::DURING;
use crate::source::{SourceKind, SourceSpan, SourceText};
use crate::spec::{self, Spec};
use crate::tree::{self, Data, Entry, SectionTable, SpannedValue};
use crate::{
    Asked, Draft, Family, Plan, Provision, Scene, SpecError, ready_made, resolve, survive,
};

/// A question: factors with their levels, workloads, a design.
///
/// Made from a file by [`parse`](Self::parse), changed by
/// [`set`](Self::set) and [`set_flag`](Self::set_flag), and consumed by
/// [`resolve`](Self::resolve). It knows no machine.
#[derive(Clone, Debug)]
pub struct Experiment {
    source: Arc<SourceText>,
    pub(crate) root: SectionTable,
    /// Whether baselines get controls where the file says nothing.
    control: bool,
}

impl Experiment {
    /// The ready-made experiment of that name, or else what the file there says.
    ///
    /// # Errors
    ///
    /// Neither is there, and as [`parse`](Self::parse).
    pub fn named(word: &str) -> Result<Self, SpecError> {
        if let Some((name, text)) = ready_made().iter().find(|(name, _)| *name == word) {
            return Self::parse(text, &format!("{name}.toml"));
        }
        let text = std::fs::read_to_string(word).map_err(|error| {
            SpecError::nowhere(
                format!(
                    "`{word}` is neither a ready-made experiment nor a file that can be read: \
                     {error}"
                ),
                "`plumbline list experiments` shows what is ready-made",
            )
        })?;
        Self::parse(&text, word)
    }

    /// Reads an experiment file. `file_name` is for messages.
    ///
    /// # Errors
    ///
    /// Text that is not TOML, unknown keys, impossible values, and keys that
    /// contradict each other; each with its line and a remedy.
    pub fn parse(text: &str, file_name: &str) -> Result<Self, SpecError> {
        let source = Arc::new(SourceText {
            name: file_name.to_owned(),
            text: text.to_owned(),
            kind: SourceKind::File,
        });
        let root = tree::parse_file(&source)?;
        spec::read(&root)?;
        Ok(Self {
            source,
            root,
            control: false,
        })
    }

    /// The same, with a copy of each baseline as its control (D11), unless the file or a
    /// flag says `control = "off"` or too little is compared to be worth the time.
    #[must_use]
    pub fn with_control(self) -> Self {
        Self {
            control: true,
            ..self
        }
    }

    /// The text that was parsed, without what flags changed.
    pub fn text(&self) -> &str {
        &self.source.text
    }

    /// The name of the experiment, which also names its run directories.
    pub fn name(&self) -> &str {
        self.root_text("name")
    }

    /// The question in a sentence; empty when the file asks none.
    pub fn question(&self) -> &str {
        self.root_text("question")
    }

    /// The IP versions that each network is asked for.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    pub fn families(&self) -> Result<Vec<Family>, SpecError> {
        let settings = self.spec()?.settings;
        let mut families: Vec<Family> = settings.iter().map(|it| it.scene.family).collect();
        families.sort_unstable();
        families.dedup();
        Ok(families)
    }

    /// Where and by which IP versions each network is asked for: scenes without a network
    /// and without what is laid on their paths, each once.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    pub fn settings(&self) -> Result<Vec<Scene>, SpecError> {
        let settings = self.spec()?.settings.into_iter();
        let mut scenes: Vec<Scene> = settings.map(|it| it.scene.undressed()).collect();
        scenes.sort_unstable();
        scenes.dedup();
        Ok(scenes)
    }

    /// The target that the experiment asks for: `lab`, `kubernetes` or `hosts`; empty
    /// when any will do.
    pub fn target(&self) -> &str {
        match self.root.get("target").map(|entry| &entry.value.data) {
            // `[target.kubernetes]`: reading refused any other.
            Some(Data::Table(_)) => "kubernetes",
            _ => self.root_text("target"),
        }
    }

    /// How the clusters that are compared come and go, where the file says.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    pub fn provision(&self) -> Result<Provision, SpecError> {
        Ok(self.spec()?.provision)
    }

    /// The commands that its workloads run on this machine and that were not typed and do
    /// not come with the program, each with its key.
    pub fn foreign_commands(&self) -> Vec<(&'static str, String)> {
        let workloads = match self.root.get("workload").map(|entry| &entry.value.data) {
            Some(Data::List(values)) => values.as_slice(),
            _ => &[],
        };
        let written = workloads.iter().filter_map(|value| match &value.data {
            Data::Table(table) => Some(&table.get(DURING)?.value),
            _ => None,
        });
        let foreign = written.filter_map(|value| match &value.data {
            Data::Text(text) if !value.place.is_flag() && !survive::is_ready_made(text) => {
                Some((DURING, text.clone()))
            }
            _ => None,
        });
        foreign.collect()
    }

    /// The paths within each network as written; empty unless the experiment names some.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    pub fn paths(&self) -> Result<Vec<String>, SpecError> {
        let words = self.spec()?.paths.into_iter();
        Ok(words.map(|word| word.text).collect())
    }

    /// The networks as written, before a target says what they stand for.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    pub fn networks(&self) -> Result<Vec<String>, SpecError> {
        let words = self.spec()?.networks.into_iter();
        Ok(words.map(|word| word.text).collect())
    }

    /// Where networks were typed and no baseline was, has commands that run while traffic
    /// goes on compared with the first of them: what a command does to one network it may
    /// not do to host networking.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    pub fn compare_survivors(&mut self) -> Result<(), SpecError> {
        let spec = self.spec()?;
        let is_typed = |word: &Word| word.place.as_ref().is_some_and(SourceSpan::is_flag);
        let first = spec.networks.first().filter(|it| is_typed(it));
        let first = first.filter(|it| Wanted::new(&it.text).name().is_some());
        let survives = spec.loads.iter().any(|it| it.task.survive().is_some());
        if let Some(Word { text, place }) = first
            && let Some(place) = place
            && survives
            && !is_typed(&spec.baseline)
        {
            let value = SpannedValue {
                place: place.clone(),
                data: Data::Text(text.clone()),
            };
            let key = place.clone();
            self.root
                .insert("baseline".to_owned(), Entry { key, value });
        }
        Ok(())
    }

    /// The network that the others are compared with, as written.
    pub fn baseline(&self) -> &str {
        match self.root_text("baseline") {
            "" => "host",
            written => written,
        }
    }

    /// Checks everything that needs no machine, as [`resolve`](Self::resolve) does: two
    /// flags may each be fine and yet contradict each other.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    pub fn check(&self) -> Result<(), SpecError> {
        self.spec().map(drop)
    }

    /// Expands the experiment into a plan: every treatment, each with its
    /// baseline, and the random order of each block (D7, C-1).
    ///
    /// `seed` is used unless the file or a flag sets one. `expand` is given
    /// each network as written (`all`, `flannel-vxlan`, `host-gw`) and answers
    /// with the scenes that the target makes of it, in which only the network
    /// counts, or with a sentence that says what is wrong.
    ///
    /// The baseline is added to every combination when it is not listed. Only
    /// when one network is listed twice or more and no other, as in
    /// `host-gw,host-gw`, nothing is added: that is an A/A experiment (D11),
    /// and the repetitions are compared with the first.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse); networks that `expand` refuses; loads that are
    /// shares of a maximum, for which there is [`draft`](Self::draft); plans of
    /// more than [`MAX_TRIALS`](crate::ceiling::MAX_TRIALS) trials.
    pub fn resolve(
        self,
        seed: u64,
        expand: &dyn Fn(&Asked<'_>) -> Result<Vec<Scene>, String>,
    ) -> Result<Plan, SpecError> {
        self.draft(seed, expand)?.settle(&[])
    }

    /// Expands the experiment as [`resolve`](Self::resolve) does, and leaves
    /// open what has to be measured first: the maxima that loads are shares of.
    ///
    /// # Errors
    ///
    /// As [`resolve`](Self::resolve), which refuses such loads.
    pub fn draft(
        self,
        seed: u64,
        expand: &dyn Fn(&Asked<'_>) -> Result<Vec<Scene>, String>,
    ) -> Result<Draft, SpecError> {
        resolve::draft(self.spec()?, seed, self.control, expand)
    }

    fn spec(&self) -> Result<Spec, SpecError> {
        spec::read(&self.root)
    }

    fn root_text(&self, key: &str) -> &str {
        match self.root.get(key).map(|entry| &entry.value.data) {
            Some(Data::Text(text)) => text,
            _ => "",
        }
    }
}

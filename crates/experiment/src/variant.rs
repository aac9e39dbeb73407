//! Variants of networks: the sections `[network.NAME]` of an experiment.

use crate::asked::{AskedVariant, Word};
use crate::section::FileSection;
use crate::source::SourceSpan;
use crate::{SpecError, Tuning};

/// A section `[network.NAME]`.
#[derive(Clone, Debug)]
pub(crate) struct VariantSection {
    pub(crate) name: String,
    pub(crate) place: SourceSpan,
    /// Its network; `None` for every one that the experiment lists.
    pub(crate) of: Option<Word>,
    tuning: Tuning,
}

impl VariantSection {
    pub(crate) fn asked(&self, is_optional: bool) -> AskedVariant<'_> {
        AskedVariant {
            section: &self.name,
            tuning: self.tuning,
            is_of_each: self.of.is_none(),
            is_optional,
        }
    }

    /// The network of the variant that a word names; `None` where it names another.
    pub(crate) fn network_in<'a>(&'a self, word: &'a str) -> Option<&'a str> {
        match &self.of {
            Some(of) => (word == self.name).then_some(&*of.text),
            None => word.strip_suffix(&*self.name)?.strip_suffix('+'),
        }
    }
}

/// Reads `[network.NAME]`, each one.
pub(crate) fn read(root: &FileSection<'_>) -> Result<Vec<VariantSection>, SpecError> {
    let Some(all) = root.section("network", "[network.NAME] with the network's settings")? else {
        return Ok(Vec::new());
    };
    let known: Vec<&str> = [&["of"][..], Tuning::KEYS].concat();
    let read = |(name, entry): (&String, &crate::tree::Entry)| {
        check_name(name, &entry.key)?;
        let section = all.section(name, "a section [network.NAME]")?;
        // The key is there.
        let section = section.unwrap_or(all);
        section.refuse_unknown(&known)?;
        let tuning = Tuning::read(&section)?;
        if tuning == Tuning::default() {
            return Err(SpecError::at(
                &entry.key,
                format!("the variant `{name}` sets nothing"),
                "give it a key of its own, such as gro = false or mtu = 9000",
            ));
        }
        Ok(VariantSection {
            name: name.clone(),
            place: entry.key.clone(),
            of: section.text("of")?.map(Word::written),
            tuning,
        })
    };
    all.table.iter().map(read).collect()
}

/// `/` and `:` mean paths and backends, `+` what is beside a network, `,` the next one.
fn check_name(name: &str, place: &SourceSpan) -> Result<(), SpecError> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_group = ["all", "usual"].contains(&name);
    if (1..=64).contains(&name.len()) && name.chars().all(is_fine) && !is_group {
        return Ok(());
    }
    Err(SpecError::at(
        place,
        format!("\"{name}\" cannot name a variant of a network"),
        "use 1 to 64 letters, digits, `-`, `_` or `.`, and neither `all` nor `usual`",
    ))
}

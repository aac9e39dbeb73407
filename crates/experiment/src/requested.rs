//! Networks as an experiment asks for them, and what a target makes of them.

use jiff::SignedDuration;

use crate::asked::{AskedVariant, Word};
use crate::spec::Spec;
use crate::variant::VariantSection;
use crate::{Asked, Scene, SpecError, Wanted};

/// Gives the networks that the target knows by a word: scenes of which only
/// the network counts.
pub(crate) type Expand<'a> = &'a dyn Fn(&Asked<'_>) -> Result<Vec<Scene>, String>;

/// A network with a path as the experiment asks for them, and where.
#[derive(Clone, Copy)]
pub(crate) struct RequestedNetwork<'a> {
    word: &'a Word,
    path: Option<&'a Word>,
    /// The network in the word.
    network: &'a str,
    /// What is planted beside it in nanoseconds: `host+2us`.
    planted_ns: u64,
    variant: Option<AskedVariant<'a>>,
}

impl<'a> RequestedNetwork<'a> {
    /// What a word asks for, where an experiment has these variants.
    pub(crate) fn new(word: &'a Word, variants: &'a [VariantSection]) -> Self {
        let (network, planted_ns) = planted(&word.text);
        let found = variants
            .iter()
            .find_map(|it| Some((it.network_in(network)?, it.asked(false))));
        Self {
            word,
            path: None,
            network: found.map_or(network, |(network, _)| network),
            planted_ns,
            variant: found.map(|(_, variant)| variant),
        }
    }

    /// As it is written.
    pub(crate) fn word(&self) -> &'a str {
        &self.word.text
    }

    fn asked(&self) -> Asked<'a> {
        Asked {
            network: Wanted::new(self.network),
            path: self.path.map(|path| Wanted::new(&path.text)),
            variant: self.variant,
        }
    }

    /// Whether both ask for the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.asked(), self.planted_ns) == (other.asked(), other.planted_ns)
    }

    /// Points at the path where there is one.
    pub(crate) fn refused(&self, problem: String, remedy: &str) -> SpecError {
        match &self.path.unwrap_or(self.word).place {
            Some(place) => SpecError::at(place, problem, remedy),
            None => SpecError::nowhere(problem, remedy),
        }
    }

    /// The scenes that it stands for.
    pub(crate) fn expand(&self, expand: Expand<'_>) -> Result<Vec<Scene>, SpecError> {
        let is_optional = self.variant.is_some_and(|it| it.is_optional);
        let problem = match expand(&self.asked()) {
            Ok(scenes) if !scenes.is_empty() || is_optional => {
                let one = |scene| {
                    let scene = match &self.variant {
                        Some(variant) => variant.of(scene),
                        None => scene,
                    };
                    Scene {
                        planted_ns: self.planted_ns,
                        ..scene
                    }
                };
                return Ok(scenes.into_iter().map(one).collect());
            }
            Ok(_) => format!("`{}` stands for no network here", self.word.text),
            Err(problem) => problem,
        };
        let remedy = "`plumbline list networks` shows which there are, and what each needs";
        Err(self.refused(problem, remedy))
    }
}

/// The network in a word, and what is planted beside it in nanoseconds.
fn planted(word: &str) -> (&str, u64) {
    let parts = word.rsplit_once('+').and_then(|(network, time)| {
        let time: SignedDuration = time.parse().ok()?;
        Some((network, u64::try_from(time.as_nanos()).ok()?))
    });
    parts.unwrap_or((word, 0))
}

/// All that an experiment asks for. Variants of every network stand behind each, unless
/// some of them are listed.
pub(crate) fn requests<'a>(spec: &'a Spec) -> Vec<RequestedNetwork<'a>> {
    let words = spec.networks.iter();
    let listed: Vec<RequestedNetwork<'a>> = words
        .map(|word| RequestedNetwork::new(word, &spec.variants))
        .collect();
    let is_chosen = |it: &RequestedNetwork<'_>| it.variant.is_some_and(|it| it.is_of_each);
    let of_each: Vec<&VariantSection> = match listed.iter().any(is_chosen) {
        true => Vec::new(),
        false => spec.variants.iter().filter(|it| it.of.is_none()).collect(),
    };
    let mut all = Vec::new();
    for network in listed {
        all.push(network);
        if network.variant.is_none() && network.planted_ns == 0 {
            let variants = of_each.iter().map(|section| RequestedNetwork {
                variant: Some(section.asked(true)),
                ..network
            });
            all.extend(variants);
        }
    }
    if spec.paths.is_empty() {
        return all;
    }
    let on_paths = |network: RequestedNetwork<'a>| {
        spec.paths.iter().map(move |path| RequestedNetwork {
            path: Some(path),
            ..network
        })
    };
    all.into_iter().flat_map(on_paths).collect()
}

/// Refuses variants of one network that are not of one, or are called as another is.
pub(crate) fn check_variants(spec: &Spec, expand: Expand<'_>) -> Result<(), SpecError> {
    for section in &spec.variants {
        let Some(of) = &section.of else { continue };
        if Wanted::new(&of.text).name().is_none() {
            let requested = RequestedNetwork::new(of, &[]);
            let problem = format!("`{}` is no single network", of.text);
            let remedy = "name one, or leave `of` out: the section is then of every network that \
                          the experiment lists";
            return Err(requested.refused(problem, remedy));
        }
        let is_used = spec.networks.iter().chain([&spec.baseline]);
        let mut is_used = is_used.filter(|word| planted(&word.text).0 == section.name);
        if is_used.next().is_some() && expand(&Asked::network(&section.name)).is_ok() {
            return Err(SpecError::at(
                &section.place,
                format!("there is a network `{}` already", section.name),
                "call the variant by a name of its own",
            ));
        }
    }
    Ok(())
}

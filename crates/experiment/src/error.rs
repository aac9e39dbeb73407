//! What is wrong in an experiment, where, and what to do about it.

use std::fmt;

use crate::source::{SourceKind, SourceSpan};

/// A fault in an experiment file or in a flag that changes it.
///
/// [`Display`](fmt::Display) shows the line with a caret under the fault, as
/// compilers do, and then the remedy:
///
/// ```text
/// tour.toml:12: `rates` is not a key of a workload
///    |
/// 12 | rates = 1000
///    | ^^^^^
///    = help: did you mean `rate`?
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub struct SpecError {
    // Boxed: the error is rare, and results should stay small.
    inner: Box<Fault>,
}

#[derive(Clone, Debug, PartialEq)]
struct Fault {
    problem: String,
    remedy: String,
    place: Option<SourceSpan>,
}

impl SpecError {
    /// A fault at a place.
    pub(crate) fn at(
        place: &SourceSpan,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let mut error = Self::nowhere(problem, remedy);
        error.inner.place = Some(place.clone());
        error
    }

    /// A fault that no single line holds, such as a missing section.
    pub(crate) fn nowhere(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            inner: Box::new(Fault {
                problem: problem.into(),
                remedy: remedy.into(),
                place: None,
            }),
        }
    }

    /// What is wrong, in one sentence, without the place.
    pub fn problem(&self) -> &str {
        &self.inner.problem
    }

    /// What to do about it.
    pub fn remedy(&self) -> &str {
        &self.inner.remedy
    }

    /// Line of the file, from 1; `None` when the fault is not in a file.
    pub fn line(&self) -> Option<usize> {
        let place = self.inner.place.as_ref()?;
        (place.source.kind == SourceKind::File).then(|| place.line())
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = &self.inner.problem;
        match &self.inner.place {
            None => writeln!(f, "{problem}")?,
            Some(place) if place.source.kind == SourceKind::File => {
                let line = place.line();
                writeln!(f, "{}:{line}: {problem}", place.source.name)?;
                excerpt(f, place, &line.to_string())?;
            }
            Some(place) => {
                writeln!(f, "{}: {problem}", place.source.name)?;
                excerpt(f, place, "")?;
            }
        }
        write!(f, "   = help: {}", self.inner.remedy)
    }
}

/// The line with a caret line under it.
fn excerpt(f: &mut fmt::Formatter<'_>, place: &SourceSpan, number: &str) -> fmt::Result {
    let (indent, width) = place.columns();
    let line = place.line_text();
    // Tabs stay tabs under the line, or the caret would stand elsewhere.
    let blank: String = line
        .chars()
        .take(indent)
        .map(|c| if c == '\t' { '\t' } else { ' ' })
        .collect();
    writeln!(f, "   |")?;
    writeln!(f, "{number:>2} | {line}")?;
    writeln!(f, "   | {blank}{}", "^".repeat(width))
}

//! Text that values came from, and places in it.

use std::ops::Range;
use std::sync::Arc;

/// One text that values were read from: a file, or what was typed after a flag.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SourceText {
    /// File name, or the flag such as `--rate`.
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) kind: SourceKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceKind {
    /// An experiment file; messages show its lines.
    File,
    /// A flag of the command line. It outranks the file.
    Flag,
    /// A workload that is compiled in, for kinds that a file does not hold.
    Default,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceSpan {
    pub(crate) source: Arc<SourceText>,
    pub(crate) span: Range<usize>,
}

impl SourceSpan {
    pub(crate) fn new(source: &Arc<SourceText>, span: Range<usize>) -> Self {
        Self {
            source: Arc::clone(source),
            span,
        }
    }

    /// Whether the value was given on the command line.
    pub(crate) fn is_flag(&self) -> bool {
        self.source.kind == SourceKind::Flag
    }

    /// Line number, from 1.
    pub(crate) fn line(&self) -> usize {
        self.before().matches('\n').count() + 1
    }

    /// The text of the line that the place starts in.
    pub(crate) fn line_text(&self) -> &str {
        let rest = &self.source.text[self.line_start()..];
        rest.lines().next().unwrap_or("")
    }

    /// Columns to the left of the place, and the width of what it marks on its
    /// first line, in characters.
    pub(crate) fn columns(&self) -> (usize, usize) {
        let indent = self.source.text[self.line_start()..self.start()]
            .chars()
            .count();
        let marked = &self.source.text[self.start()..self.end()];
        let width = marked.lines().next().unwrap_or("").chars().count();
        (indent, width.max(1))
    }

    fn before(&self) -> &str {
        &self.source.text[..self.start()]
    }

    fn line_start(&self) -> usize {
        self.before().rfind('\n').map_or(0, |at| at + 1)
    }

    // A parser may point one past the end, or into a character; a message
    // must not fail because of that.
    fn start(&self) -> usize {
        floor_char(&self.source.text, self.span.start)
    }

    fn end(&self) -> usize {
        floor_char(&self.source.text, self.span.end).max(self.start())
    }
}

fn floor_char(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

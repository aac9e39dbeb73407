//! The width and the colours of what is written.

use anstyle::{AnsiColor, Effects, Style as Ansi};

use super::text;

/// How to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether to use colour; the caller knows whether this is a terminal.
    pub colour: bool,
    /// Columns to keep within.
    pub width: usize,
}

impl Default for Style {
    /// Without colour, for 80 columns.
    fn default() -> Self {
        Self {
            colour: false,
            width: 80,
        }
    }
}

/// The meaning of a colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tint {
    #[default]
    Plain,
    Heading,
    Worse,
    Better,
    Faint,
    Warning,
}

impl Style {
    /// The text in its colour and in lines of the width, with a line break.
    pub(super) fn lines(self, tint: Tint, text: &str) -> String {
        format!("{}\n", self.paint(tint, &text::wrap(text, self.width, 2)))
    }

    /// The text in its colour, if there is colour.
    pub(super) fn paint(self, tint: Tint, text: &str) -> String {
        let ansi = match tint {
            Tint::Plain => Ansi::new(),
            Tint::Heading => Ansi::new().effects(Effects::BOLD),
            Tint::Worse => AnsiColor::Red.on_default(),
            Tint::Better => AnsiColor::Green.on_default(),
            Tint::Faint => Ansi::new().effects(Effects::DIMMED),
            Tint::Warning => AnsiColor::Yellow.on_default(),
        };
        if self.colour && tint != Tint::Plain && !text.trim().is_empty() {
            format!("{ansi}{text}{ansi:#}")
        } else {
            text.to_owned()
        }
    }
}

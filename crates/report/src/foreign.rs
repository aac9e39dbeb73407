//! Texts that come from outside: names, labels, errors.

/// A text from outside without control characters, so that it cannot move a
/// terminal's cursor or break a line (S-8).
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if is_control(c) { '\u{fffd}' } else { c })
        .collect()
}

/// Control characters, those that turn the direction of text around, and those that are no
/// characters, which XML cannot hold.
fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}')
}

/// The first line of an error, for a table.
pub(crate) fn first_line(text: &str) -> String {
    clean(text.lines().next().unwrap_or_default().trim())
}

//! Levels in words.

/// Words, if there are any.
pub(super) fn said(words: String) -> Option<String> {
    (!words.is_empty()).then_some(words)
}

/// Such as `1 service`, `2 services`.
pub(super) fn counted(number: u32, what: &str) -> String {
    in_words(number, what, &format!("{what}s"))
}

pub(super) fn in_words(number: u32, one: &str, several: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {several}"),
    }
}

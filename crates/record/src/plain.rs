//! Text of others, such as the standard error of `ssh` or a run that was handed
//! over, without what a terminal would obey (S-7).

use std::borrow::Cow;

use serde_json::Value;

/// Characters of what a parser says: it repeats all of a text that is none of what it wants.
const MOST_SAID: usize = 200;

/// The text with every control character but line ends and tabs replaced by U+FFFD:
/// no escape sequence of others moves a cursor, sets a title or hides a line.
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let shown = |it: char| if is_obeyed(it) { '\u{fffd}' } else { it };
    Cow::Owned(text.replace("\r\n", "\n").chars().map(shown).collect())
}

/// The beginning of why JSON could not be read.
pub fn why_unreadable(error: &serde_json::Error) -> String {
    error.to_string().chars().take(MOST_SAID).collect()
}

fn is_obeyed(it: char) -> bool {
    it.is_control() && !matches!(it, '\n' | '\t')
}

/// Whether JSON may hold such characters, escaped or not. Says yes too often
/// rather than too seldom.
pub(crate) fn is_suspect(json: &[u8]) -> bool {
    let escaped = |it: &[u8]| matches!(it, [b'\\', b'u' | b'b' | b'f' | b'r', ..]);
    let one_byte = |it: &[u8]| matches!(it, [0x7f, _] | [0xc2, 0x80..=0x9f]);
    json.windows(2).any(|it| escaped(it) || one_byte(it))
}

/// Makes every string and every key of a value plain.
pub(crate) fn all(value: Value) -> Value {
    match value {
        Value::String(text) => plain(&text).into(),
        Value::Array(items) => items.into_iter().map(all).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(key, value)| (plain(&key).into_owned(), all(value)))
            .collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_replaced_and_the_rest_stays() {
        assert_eq!(plain("µs\tof\nfoo"), "µs\tof\nfoo");
        assert_eq!(plain("a\u{1b}[2Jb"), "a\u{fffd}[2Jb");
        assert_eq!(plain("one\r\ntwo\rthree"), "one\ntwo\u{fffd}three");
        // The one-byte form of an escape sequence's beginning, and DEL.
        assert_eq!(plain("\u{9b}2J\u{7f}"), "\u{fffd}2J\u{fffd}");
    }

    #[test]
    fn escapes_in_json_are_found_in_every_form() {
        for text in ["\u{1b}[2J", "\u{8}", "\u{9b}31m", "\u{7f}", "\r"] {
            let json = json!({ "name": [{ text: text }] });
            assert!(is_suspect(json.to_string().as_bytes()), "{json}");
            let shown = all(json).to_string();
            assert!(!is_suspect(shown.as_bytes()), "{shown}");
        }
        let harmless = r#"{"p50":1.5,"error":"a \"quoted\"\n word, 5 µs"}"#;
        assert!(!is_suspect(harmless.as_bytes()));
    }
}

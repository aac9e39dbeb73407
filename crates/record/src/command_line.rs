//! The command line of a run as it may be handed on.

use std::ops::Range;

/// What stands for a secret.
const HIDDEN: &str = "…";
/// Bytes of the longest word that is looked through.
const LONGEST: usize = 16 << 10;
/// Words after whose `=`, `:` or blank a secret follows.
const NAMES: [&str; 9] = [
    "password",
    "passwd",
    "token",
    "secret",
    "apikey",
    "api_key",
    "api-key",
    "access_key",
    "bearer",
];

/// A command line without what looks like a secret: the values of tokens, passwords and
/// keys, and the users in addresses such as `https://user:password@host`. Anyone who is
/// given the run can read it. A word of more than 16 KiB is hidden whole.
pub fn without_secrets(command: &[String]) -> Vec<String> {
    let mut is_value = false;
    let shown = command.iter().map(|word| {
        let is_hidden = std::mem::replace(&mut is_value, is_flag_of_secret(word));
        match is_hidden {
            true => HIDDEN.to_owned(),
            false => hide(word),
        }
    });
    shown.collect()
}

/// Whether the next word is a secret: `--token`, with its value apart.
fn is_flag_of_secret(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    word.starts_with('-') && NAMES.iter().any(|name| word.ends_with(name))
}

fn hide(word: &str) -> String {
    if word.len() > LONGEST {
        return HIDDEN.to_owned();
    }
    let mut shown = word.to_owned();
    let mut from = 0;
    let next = |text: &str, from| {
        let found = [secret(text, from), user(text, from)].into_iter().flatten();
        found.min_by_key(|place| place.start)
    };
    while let Some(place) = next(&shown, from) {
        from = place.start + HIDDEN.len();
        shown.replace_range(place, HIDDEN);
    }
    shown
}

/// The first value of a secret from a position on.
fn secret(text: &str, from: usize) -> Option<Range<usize>> {
    let lower = text.to_ascii_lowercase();
    let of_name = |name: &&str| {
        let found = lower.match_indices(*name).map(|(at, _)| at + name.len());
        let values = found.filter_map(|end| value(text, end));
        values
            .filter(|place| place.start >= from)
            .min_by_key(|place| place.start)
    };
    NAMES
        .iter()
        .filter_map(of_name)
        .min_by_key(|place| place.start)
}

/// The value of a name that ends at a position.
fn value(text: &str, end: usize) -> Option<Range<usize>> {
    let rest = &text[end..];
    // What is left of a longer name, such as TOKEN_FILE.
    let sign = end + rest.find(|it: char| !it.is_alphanumeric() && it != '_' && it != '-')?;
    let word = text[..end].rsplit(char::is_whitespace).next()?;
    let may_be_apart = word.starts_with('-') || word.eq_ignore_ascii_case("bearer");
    let is_given = text[sign..].starts_with(['=', ':']) || may_be_apart;
    let start = sign + text[sign..].find(|it: char| !matches!(it, '=' | ':' | ' ' | '"' | '\''))?;
    let quote = text[..start]
        .chars()
        .next_back()
        .filter(|it| "\"'".contains(*it));
    let length = match quote {
        Some(quote) => text[start..].find(quote).unwrap_or(text.len() - start),
        None => length(&text[start..], &[]),
    };
    (is_given && length > 0 && start > sign).then(|| start..start + length)
}

/// The user of an address from a position on.
fn user(text: &str, from: usize) -> Option<Range<usize>> {
    let start = from + text.get(from..)?.find("://")? + 3;
    let host = &text[start..start + length(&text[start..], &['/', '?', '#'])];
    let end = host.rfind('@').filter(|end| host[..*end].contains(':'))?;
    Some(start..start + end)
}

/// Bytes up to the end of a word, or to one of some other characters.
fn length(text: &str, ends: &[char]) -> usize {
    let is_end = |it: char| it.is_whitespace() || "\"';&|)".contains(it) || ends.contains(&it);
    text.find(is_end).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_shown(typed: &[&str], shown: &[&str]) {
        let typed: Vec<String> = typed.iter().map(|word| (*word).to_owned()).collect();
        assert_eq!(without_secrets(&typed), shown);
    }

    #[test]
    fn secrets_are_hidden_wherever_they_stand() {
        assert_shown(
            &[
                "--provision",
                "HCLOUD_TOKEN=abc1 make up CNI={network} && echo ok",
            ],
            &[
                "--provision",
                "HCLOUD_TOKEN=… make up CNI={network} && echo ok",
            ],
        );
        assert_shown(
            &["curl -H 'Authorization: Bearer xyz' https://me:pw@host:80/x?token=t1&a=b"],
            &["curl -H 'Authorization: Bearer …' https://…@host:80/x?token=…&a=b"],
        );
        assert_shown(
            &["--token", "s3cr3t", "--blocks", "9"],
            &["--token", "…", "--blocks", "9"],
        );
        assert_shown(&["DB_PASSWORD: \"p w\""], &["DB_PASSWORD: \"…\""]);
    }

    /// Looking through it would take as long as its length to the third.
    #[test]
    fn a_word_without_end_is_hidden_whole() {
        assert_shown(&["a", &"token=x;".repeat(1 << 20)], &["a", "…"]);
    }

    #[test]
    fn what_is_no_secret_stays() {
        for typed in [
            "plumbline",
            "--network=calico,host",
            "https://host:443/a@b",
            "make token && make",
            "µs → ns",
        ] {
            assert_shown(&[typed], &[typed]);
        }
    }
}

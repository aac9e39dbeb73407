//! The known word closest to a mistyped one.

/// The member of `known` nearest to `word`, if it is near enough to suggest.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase().replace('-', "_");
    let limit = (word.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|candidate| {
            let plain = candidate.replace('-', "_");
            (strsim::levenshtein(&word, &plain), candidate)
        })
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// A remedy for an unknown word: the nearest one, or all of them.
pub(crate) fn suggestion(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known here: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_word_that_was_meant() {
        let known = ["rate", "request_size", "response_size", "connections"];
        assert_eq!(nearest("rates", known), Some("rate"));
        assert_eq!(nearest("Request-Size", known), Some("request_size"));
        assert_eq!(nearest("conections", known), Some("connections"));
        assert_eq!(nearest("colour", known), None);
    }
}

//! Lines of a given width.

use crate::number;

/// Columns that a text takes. Counts characters: the labels and numbers of a
/// report have no wide ones.
pub(super) fn width(text: &str) -> usize {
    text.chars().count()
}

/// The text cut to `width` columns, with an ellipsis where something is gone.
pub(super) fn cut(text: &str, width: usize) -> String {
    if self::width(text) <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// At most `lines` lines of a wrapped text, with an ellipsis where something is gone.
pub(super) fn beginning(text: &str, lines: usize, width: usize) -> String {
    let mut all: Vec<String> = text.lines().map(str::to_owned).collect();
    if all.len() > lines {
        all.truncate(lines);
        if let Some(last) = all.last_mut() {
            *last = cut(&format!("{last} …"), width);
        }
    }
    all.join("\n")
}

/// The text in lines of at most `width` columns, broken at spaces but not at
/// no-break spaces, which become plain ones; lines after the first are
/// indented. A word that is longer than a line stays whole, as cutting it
/// would make it useless.
pub(super) fn wrap(text: &str, width: usize, indent: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split([' ', '\n']).filter(|word| !word.is_empty()) {
        let needed = self::width(word);
        if column > 0 && column + 1 + needed > width {
            out.push('\n');
            out += &" ".repeat(indent);
            column = indent;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out += &number::plain(word);
        column += needed;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_within_the_width_and_lose_no_word() {
        let text = "one two three four five six seven";
        let wrapped = wrap(text, 12, 2);
        assert!(wrapped.lines().all(|line| width(line) <= 12), "{wrapped}");
        assert_eq!(
            wrapped.split_whitespace().collect::<Vec<_>>().join(" "),
            text
        );
    }

    #[test]
    fn a_beginning_says_that_more_follows() {
        let text = "one two\nthree\nfour";
        assert_eq!(beginning(text, 2, 9), "one two\nthree …");
        assert_eq!(beginning(text, 1, 7), "one tw…");
        assert_eq!(beginning(text, 3, 9), text);
    }

    #[test]
    fn a_number_stays_with_its_unit() {
        assert_eq!(wrap("about 3.0\u{a0}% more", 10, 0), "about\n3.0 % more");
    }

    #[test]
    fn a_cut_label_says_that_it_was_cut() {
        assert_eq!(cut("host-gw same-node", 9), "host-gw…");
        assert_eq!(cut("host", 9), "host");
    }
}

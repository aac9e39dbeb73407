//! Lines from a byte stream that may be split anywhere.

use memchr::memchr;

/// Bytes of a line that are kept. What we need of HTTP fits; the rest of a
/// longer line is counted and skipped.
const KEPT: usize = 128;

/// How far one line has been read. Fixed in size, so that the memory of a
/// million connections is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineReader {
    /// One more than is given out, for a carriage return.
    kept: [u8; KEPT + 1],
    length: u8,
    longer: bool,
    complete: bool,
}

/// A complete line without its line end, truncated to its first 128 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    pub(crate) text: &'a [u8],
    /// Whether there was more.
    pub(crate) cut: bool,
}

impl<'a> Line<'a> {
    fn new(text: &'a [u8]) -> Self {
        Self {
            text: &text[..text.len().min(KEPT)],
            cut: text.len() > KEPT,
        }
    }
}

impl Default for LineReader {
    fn default() -> Self {
        Self {
            kept: [0; KEPT + 1],
            length: 0,
            longer: false,
            complete: false,
        }
    }
}

impl LineReader {
    /// Discards a partial line.
    pub(crate) fn reset(&mut self) {
        self.length = 0;
        self.longer = false;
        self.complete = false;
    }

    /// Reads on, at most to the end of one line; gives how many bytes it took,
    /// and the line when it is complete.
    #[inline]
    pub(crate) fn next<'a>(&'a mut self, bytes: &'a [u8]) -> (usize, Option<Line<'a>>) {
        if self.complete {
            self.reset();
        }
        let Some(end) = memchr(b'\n', bytes) else {
            self.keep(bytes);
            return (bytes.len(), None);
        };
        let piece = &bytes[..end];
        if self.length == 0 {
            // The usual case: the whole line is in these bytes.
            return (end + 1, Some(Line::new(strip(piece))));
        }
        self.keep(piece);
        self.complete = true;
        let text = &self.kept[..usize::from(self.length)];
        let text = if self.longer { text } else { strip(text) };
        (end + 1, Some(Line::new(text)))
    }

    fn keep(&mut self, piece: &[u8]) {
        let length = usize::from(self.length);
        let take = piece.len().min(self.kept.len() - length);
        self.kept[length..length + take].copy_from_slice(&piece[..take]);
        self.length += take as u8;
        self.longer |= take < piece.len();
    }
}

/// A line without its carriage return.
fn strip(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// A header's name and its value without the space around it; `None` when
/// this is not a header.
pub(crate) fn header(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr(b':', line)?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    let is_name = !name.is_empty() && name.iter().all(|b| b.is_ascii_graphic());
    is_name.then(|| (name, value.trim_ascii()))
}

/// Whether a comma-separated header value holds a word, whatever its case.
pub(crate) fn has_word(value: &[u8], word: &[u8]) -> bool {
    value
        .split(|&b| b == b',')
        .any(|part| part.trim_ascii().eq_ignore_ascii_case(word))
}

/// A header value that is a decimal number and nothing else.
pub(crate) fn decimal(value: &[u8]) -> Option<u64> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line's length around the limit must not matter to how it is cut.
    #[test]
    fn a_line_is_the_same_in_one_piece_and_in_many() {
        for length in 1..KEPT + 5 {
            for end in ["\n", "\r\n"] {
                let stream = "x".repeat(length) + end;
                let mut whole = LineReader::default();
                let (taken, line) = whole.next(stream.as_bytes());
                let line = line.unwrap();
                assert_eq!(taken, stream.len());
                assert_eq!(line.text.len(), length.min(KEPT));
                assert_eq!(line.cut, length > KEPT);
                let mut bytewise = LineReader::default();
                for (at, byte) in stream.as_bytes().chunks(1).enumerate() {
                    let (_, part) = bytewise.next(byte);
                    assert_eq!(part.is_some(), at + 1 == stream.len());
                    if let Some(part) = part {
                        assert_eq!((part.text, part.cut), (line.text, line.cut));
                    }
                }
            }
        }
    }
}

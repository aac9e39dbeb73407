//! The checksum in each line of `trials.jsonl`: its last field, CRC-32 of what stands
//! before that field, in eight hexadecimal digits.

/// What comes before the digits.
const FIELD: &[u8] = br#","checksum":""#;
/// Bytes of the whole field with the brace that ends the line.
const LENGTH: usize = FIELD.len() + 8 + 2;

/// Adds the checksum to a JSON object.
pub(super) fn close(line: &mut Vec<u8>) {
    let brace = line.pop();
    debug_assert_eq!(brace, Some(b'}'));
    let digits = digits(line);
    line.extend_from_slice(FIELD);
    line.extend_from_slice(digits.as_bytes());
    line.extend_from_slice(b"\"}");
}

/// Whether a line without its end is as it was written. Earlier builds wrote no
/// checksum, and theirs are taken as they are.
pub(super) fn holds(line: &[u8]) -> bool {
    let Some((before, field)) = line.split_last_chunk::<LENGTH>() else {
        return true;
    };
    let Some(rest) = field.strip_prefix(FIELD) else {
        return true;
    };
    rest.starts_with(digits(before).as_bytes())
}

fn digits(bytes: &[u8]) -> String {
    format!("{:08x}", crc32fast::hash(bytes))
}

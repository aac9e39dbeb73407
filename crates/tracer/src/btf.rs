//! Names that the kernel has for numbers, from its own type information (BTF).

use std::fs;

const KERNEL: &str = "/sys/kernel/btf/vmlinux";

/// The name of a number in one of the kernel's enumerations, without what all names of it
/// begin with; `None` where the kernel does not tell.
pub(crate) fn enumerator(of: &str, number: u32) -> Option<String> {
    let types = fs::read(KERNEL).ok()?;
    let name = find(&types, of, number)?;
    let prefix = format!("{}_", of.to_uppercase());
    Some(name.strip_prefix(&prefix).unwrap_or(&name).to_owned())
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let value = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_ne_bytes(value))
}

/// Goes through the types one by one: each has a head of 12 bytes and, by its kind, more.
pub(crate) fn find(bytes: &[u8], of: &str, number: u32) -> Option<String> {
    let field = |at: usize| Some(u32_at(bytes, at)? as usize);
    let head = field(4)?;
    let (types, length, strings) = (head + field(8)?, field(12)?, head + field(16)?);
    let text = |offset: usize| {
        let rest = bytes.get(strings + offset..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        std::str::from_utf8(&rest[..end]).ok()
    };
    let mut at = types;
    while at < types + length {
        let (name, info) = (field(at)?, field(at + 4)?);
        let (kind, members) = (info >> 24 & 0x1f, info & 0xffff);
        let body = at + 12;
        at = body
            + match kind {
                // Integers, variables, tags.
                1 | 14 | 17 => 4,
                // Arrays.
                3 => 12,
                // Structures, unions, sections, enumerations of 64 bits.
                4 | 5 | 15 | 19 => members * 12,
                // Enumerations, prototypes.
                6 | 13 => members * 8,
                _ => 0,
            };
        if kind == 6 && text(name) == Some(of) {
            for member in 0..members {
                if u32_at(bytes, body + member * 8 + 4)? == number {
                    return text(field(body + member * 8)?).map(str::to_owned);
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An integer, then an enumeration of two.
    fn planted() -> Vec<u8> {
        let strings = b"\0why\0WHY_NOT\0WHY_SO\0";
        let types: [u32; 11] = [0, 1 << 24, 4, 0, 1, 6 << 24 | 2, 4, 5, 0, 13, 9];
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        let length = types.len() as u32 * 4;
        for value in [24, 0, length, length, strings.len() as u32] {
            bytes.extend(u32::to_ne_bytes(value));
        }
        for value in types {
            bytes.extend(value.to_ne_bytes());
        }
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn a_number_has_the_name_that_its_enumeration_gives_it() {
        let bytes = planted();
        assert_eq!(find(&bytes, "why", 9).as_deref(), Some("WHY_SO"));
        assert_eq!(find(&bytes, "why", 0).as_deref(), Some("WHY_NOT"));
        assert_eq!(find(&bytes, "why", 1), None);
        assert_eq!(find(&bytes, "who", 9), None);
        assert_eq!(find(&bytes[..30], "why", 9), None);
    }
}

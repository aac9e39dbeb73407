//! Names that the kernel has for numbers, from its own type information (BTF).

use std::fs;

const KERNEL: &str = "/sys/kernel/btf/vmlinux";

/// The numbers of one of the kernel's enumerations with their names, without what all of these
/// begin with; `None` where the kernel does not have it, or does not tell.
pub(crate) fn enumerators(of: &str) -> Option<Vec<(u32, String)>> {
    let types = fs::read(KERNEL).ok()?;
    let prefix = format!("{}_", of.to_uppercase());
    let short = |name: &str| name.strip_prefix(&prefix).unwrap_or(name).to_owned();
    let each = find(&types, of)?.into_iter();
    Some(each.map(|(number, name)| (number, short(name))).collect())
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let value = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_ne_bytes(value))
}

/// Goes through the types one by one: each has a head of 12 bytes and, by its kind, more.
fn find<'a>(bytes: &'a [u8], of: &str) -> Option<Vec<(u32, &'a str)>> {
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
            let each = (0..members).map(|member| body + member * 8);
            return each
                .map(|at| Some((u32_at(bytes, at + 4)?, text(field(at)?)?)))
                .collect();
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
    fn numbers_have_the_names_that_their_enumeration_gives_them() {
        let bytes = planted();
        assert_eq!(
            find(&bytes, "why"),
            Some(vec![(0, "WHY_NOT"), (9, "WHY_SO")])
        );
        assert_eq!(find(&bytes, "who"), None);
        assert_eq!(find(&bytes[..30], "why"), None);
    }
}

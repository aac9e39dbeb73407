//! What fuzzing targets reach of this crate.

use crate::cpuinfo_value;

/// Reads `/proc/cpuinfo`: which of the values that are looked for are there.
///
/// # Panics
///
/// When a value is not in the file.
pub fn cpuinfo(text: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    for key in ["vendor_id", "model name"] {
        let value = cpuinfo_value(text, key);
        assert!(value.is_none_or(|it| text.contains(it)), "{key}");
        found.extend(value.map(|_| key));
    }
    found
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_seed_has_all_values() {
        let text = String::from_utf8(crate::seeds::seed("proc/proc-cpuinfo")).unwrap();
        assert_eq!(super::cpuinfo(&text), ["vendor_id", "model name"]);
        assert!(crate::is_user_mode(&text));
    }
}

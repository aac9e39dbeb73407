//! Which comparisons there are, and what each is to reach.

mod bulk;
mod requests;

use crate::bout::Bout;

/// All comparisons, in the order of the table.
pub(crate) fn all() -> impl Iterator<Item = &'static Bout> {
    requests::REQUESTS.iter().chain(bulk::BULK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> = all().map(|bout| bout.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all().count());
    }
}

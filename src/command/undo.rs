//! Undoing what was built, without hiding why it had to be.

use plumbline_harness::Target;

/// Undoes what was built, and says everything that could not be undone.
pub(crate) fn take_down(target: &mut (impl Target + ?Sized)) -> anyhow::Result<()> {
    let errors = target.teardown();
    if errors.is_empty() {
        return Ok(());
    }
    let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
    Err(anyhow::anyhow!(
        "the {} could not be taken down cleanly: {}",
        target.name(),
        all.join("; ")
    ))
}

/// What was done, when what stood for it has been undone. Neither error hides
/// the other: the first one comes first.
pub(crate) fn with_undoing<T>(
    done: anyhow::Result<T>,
    undone: anyhow::Result<()>,
) -> anyhow::Result<T> {
    match (done, undone) {
        (done, Ok(())) => done,
        (Ok(_), Err(left)) => Err(left),
        (Err(error), Err(left)) => Err(anyhow::anyhow!("{error:#}; and {left:#}")),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn no_error_hides_another() {
        let text = |done, undone| with_undoing::<u8>(done, undone).unwrap_err().to_string();
        assert_eq!(with_undoing(Ok(7), Ok(())).unwrap(), 7);
        assert_eq!(text(Err(anyhow!("full")), Ok(())), "full");
        assert_eq!(text(Ok(7), Err(anyhow!("left"))), "left");
        let cause = anyhow!("no space").context("the page");
        assert_eq!(
            text(Err(cause), Err(anyhow!("left"))),
            "the page: no space; and left"
        );
    }
}

//! Undoing what was built, without hiding why it had to be.

use plumbline_harness::Target;

use crate::{LeftBehind, SessionError};

/// Undoes what was built.
///
/// # Errors
///
/// Everything that could not be undone.
pub fn take_down(target: &mut dyn Target) -> Result<(), LeftBehind> {
    let errors = target.teardown();
    if errors.is_empty() {
        return Ok(());
    }
    Err(LeftBehind {
        target: target.name(),
        errors,
    })
}

/// The result of some work after its undoing. Neither error hides the other: the
/// first one comes first.
pub(crate) fn with_undoing<T>(
    done: Result<T, SessionError>,
    undone: Result<(), LeftBehind>,
) -> Result<T, SessionError> {
    match (done, undone) {
        (done, Ok(())) => done,
        (Ok(_), Err(left)) => Err(left.into()),
        (Err(first), Err(left)) => Err(SessionError::Both {
            first: Box::new(first),
            left,
        }),
    }
}

#[cfg(test)]
mod tests {
    use plumbline_harness::TargetError;

    use super::*;

    fn left() -> Result<(), LeftBehind> {
        Err(LeftBehind {
            target: "lab",
            errors: vec![TargetError::Failed("a link stays".to_owned())],
        })
    }

    fn full() -> Result<u8, SessionError> {
        Err(SessionError::Usage("no such network".to_owned()))
    }

    #[test]
    fn no_error_hides_another() {
        let text = |done, undone| with_undoing::<u8>(done, undone).unwrap_err().to_string();
        assert_eq!(with_undoing(Ok(7), Ok(())).unwrap(), 7);
        assert_eq!(text(full(), Ok(())), "no such network");
        let stays = "the lab could not be taken down cleanly: a link stays";
        assert_eq!(text(Ok(7), left()), stays);
        assert_eq!(
            text(full(), left()),
            format!("no such network; and {stays}")
        );
    }

    #[test]
    fn what_kept_several_things_from_being_undone_is_said_once() {
        let failed = |why: &str| TargetError::Failed(why.to_owned());
        let left = LeftBehind {
            target: "cluster",
            errors: vec![failed("no answer"), failed("no right"), failed("no answer")],
        };
        let said = "the cluster could not be taken down cleanly: no answer; no right";
        assert_eq!(left.to_string(), said);
    }

    #[test]
    fn whose_fault_it_was_does_not_depend_on_what_is_left() {
        assert!(with_undoing(full(), left()).unwrap_err().is_usage());
        assert!(!with_undoing(Ok(7), left()).unwrap_err().is_usage());
    }
}

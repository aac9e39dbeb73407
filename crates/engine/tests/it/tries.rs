//! What the machine may disturb, tried until it did not. Those that run the program use this too.

/// The first of ten tries that was in time, or the last of them. What must be right is
/// right in every one; what must be quick is so where others leave the machine free.
pub(crate) fn in_time<T>(attempt: impl Fn() -> T, is_in_time: impl Fn(&T) -> bool) -> T {
    often_in_time(1, attempt, is_in_time)
}

/// The same of what is promised: so many of ten tries have to be in time. Gives one that was
/// not where fewer were.
pub(crate) fn often_in_time<T>(
    least: usize,
    attempt: impl Fn() -> T,
    is_in_time: impl Fn(&T) -> bool,
) -> T {
    let (mut in_time, mut late) = (0, None);
    for _ in 0..10 {
        let tried = attempt();
        if !is_in_time(&tried) {
            late = Some(tried);
            continue;
        }
        in_time += 1;
        if in_time == least {
            return tried;
        }
    }
    late.expect("fewer than all ten are asked for")
}

#[test]
fn what_was_in_time_less_often_than_promised_is_found() {
    for (good, least, is_held) in [(1, 1, true), (2, 3, false), (3, 3, true), (0, 1, false)] {
        let tried = std::cell::Cell::new(0);
        let attempt = || tried.replace(tried.get() + 1);
        let is_good = |it: &i32| *it >= 10 - good;
        let seen = often_in_time(least, attempt, is_good);
        assert_eq!(
            is_good(&seen),
            is_held,
            "{good} of ten, and {least} are asked for"
        );
    }
}

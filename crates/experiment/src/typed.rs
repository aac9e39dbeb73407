//! Times, shares and numbers as people type them.

use std::time::Duration;

/// `10s`, `500ms`, or a number of seconds.
///
/// # Errors
///
/// Text that is no time; `flag` is what it was given to.
pub fn time(text: &str, flag: &str) -> Result<Duration, String> {
    let wrong = || format!("{flag} {text}: write a time such as 10s or 500ms");
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|_| wrong());
    }
    let span: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    span.try_into().map_err(|_| wrong())
}

/// `10%` as 0.10.
pub(crate) fn percent(text: &str) -> Option<f64> {
    let percent: f64 = text.strip_suffix('%')?.trim().parse().ok()?;
    Some(percent / 100.0)
}

/// A number that may end in k or M, as iperf3 and people write them.
///
/// # Errors
///
/// Text that is no number.
pub fn number(text: &str) -> Result<f64, String> {
    let (digits, scale) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1e3),
        None => match text.strip_suffix(['m', 'M']) {
            Some(digits) => (digits, 1e6),
            None => (text, 1.0),
        },
    };
    let number: Result<f64, _> = digits.parse();
    number
        .map(|number| number * scale)
        .map_err(|_| "write a number such as 5000, 20k or 1.5M".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_and_without_units() {
        assert_eq!(time("2", "-d").unwrap(), Duration::from_secs(2));
        assert_eq!(time("500ms", "-d").unwrap(), Duration::from_millis(500));
        assert!(time("-1s", "-d").is_err());
        assert!(time("soon", "-d").is_err());
    }

    #[test]
    fn numbers_are_read_as_people_write_them() {
        assert_eq!(number("5000"), Ok(5e3));
        assert_eq!(number("20k"), Ok(20e3));
        assert_eq!(number("1.5M"), Ok(1.5e6));
        assert!(number("k").is_err() && number("fast").is_err());
    }
}

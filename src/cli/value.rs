//! Values as people write them.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use plumbline_experiment::{KINDS, WorkloadKind};

/// A kind of workload, by its name in the table of kinds.
pub(super) fn kind() -> impl TypedValueParser<Value = WorkloadKind> {
    let rows = KINDS.iter();
    let words = rows.map(|row| PossibleValue::new(row.name).help(row.summary));
    PossibleValuesParser::new(words).try_map(|name| {
        WorkloadKind::find(&name).ok_or_else(|| format!("there is no workload `{name}`"))
    })
}

/// `10s`, `500ms`, or a number of seconds.
pub(crate) fn duration(text: &str, flag: &str) -> Result<Duration, String> {
    let wrong = || format!("{flag} {text}: write a time such as 10s or 500ms");
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|_| wrong());
    }
    let span: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    span.try_into().map_err(|_| wrong())
}

/// An address to listen on. A port alone means loopback: a server that others
/// can reach has to be asked for.
pub(super) fn listen(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    text.parse().map_err(|_| match text.strip_prefix(':') {
        Some(port) => format!("write 0.0.0.0:{port} for all addresses, or {port} for 127.0.0.1"),
        None => "write ADDRESS:PORT, with the address in figures, such as 10.0.0.1:7117".to_owned(),
    })
}

/// A number that may end in k or M, as iperf3 and people write them.
pub(super) fn number(text: &str) -> Result<f64, String> {
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
        assert_eq!(duration("2", "-d").unwrap(), Duration::from_secs(2));
        assert_eq!(duration("500ms", "-d").unwrap(), Duration::from_millis(500));
        assert!(duration("-1s", "-d").is_err());
        assert!(duration("soon", "-d").is_err());
    }

    #[test]
    fn numbers_and_ports_are_read_as_people_write_them() {
        assert_eq!(number("5000"), Ok(5e3));
        assert_eq!(number("20k"), Ok(20e3));
        assert_eq!(number("1.5M"), Ok(1.5e6));
        assert!(number("k").is_err() && number("fast").is_err());
        assert_eq!(listen("9000").unwrap().to_string(), "127.0.0.1:9000");
        assert_eq!(listen("[::1]:0").unwrap().to_string(), "[::1]:0");
        assert!(listen(":9000").unwrap_err().contains("0.0.0.0:9000"));
        assert!(listen("localhost:9000").is_err());
    }
}

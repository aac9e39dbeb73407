//! Values as people write them.

use std::net::{Ipv4Addr, SocketAddr};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use plumbline_experiment::{ArrivalProcess, DriverChoice, KINDS, WorkloadKind};

/// One of some values, each with its word and what it means.
fn one_of<T: Copy + Send + Sync + 'static>(
    words: impl IntoIterator<Item = (&'static str, &'static str, T)>,
) -> impl TypedValueParser<Value = T> {
    let words: Vec<_> = words.into_iter().collect();
    let possible = words.iter();
    let possible = possible.map(|(word, help, _)| PossibleValue::new(*word).help(*help));
    PossibleValuesParser::new(possible).try_map(move |typed| {
        let mut words = words.iter();
        let found = words.find(|(word, ..)| *word == typed);
        found.map(|(.., value)| *value).ok_or("no such value")
    })
}

/// A kind of workload, by its name in the table of kinds.
pub(super) fn kind() -> impl TypedValueParser<Value = WorkloadKind> {
    one_of(
        KINDS
            .each_ref()
            .map(|row| (row.name, row.summary, row.kind)),
    )
}

/// How requests are spread in time, where a rate is given.
pub(super) fn process() -> impl TypedValueParser<Value = ArrivalProcess> {
    one_of([
        ("constant", "Equal gaps", ArrivalProcess::Constant),
        ("poisson", "Exponential gaps", ArrivalProcess::Poisson),
    ])
}

/// A driver of the engine, by its word and what it means.
pub fn driver() -> impl TypedValueParser<Value = DriverChoice> {
    use DriverChoice::{Auto, Epoll, Uring};
    one_of([
        ("auto", "The best one that this kernel allows", Auto),
        (
            "epoll",
            "Readiness events, and a system call for each message",
            Epoll,
        ),
        ("uring", "io_uring, Linux 6.1 and later", Uring),
    ])
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_as_people_write_them() {
        assert_eq!(listen("9000").unwrap().to_string(), "127.0.0.1:9000");
        assert_eq!(listen("[::1]:0").unwrap().to_string(), "[::1]:0");
        assert!(listen(":9000").unwrap_err().contains("0.0.0.0:9000"));
        assert!(listen("localhost:9000").is_err());
    }
}

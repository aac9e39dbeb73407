//! Values as people write them.

use std::net::{Ipv4Addr, SocketAddr};

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

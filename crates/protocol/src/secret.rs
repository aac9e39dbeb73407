//! What both ends of a load know, and others do not.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Bytes of a secret.
const LENGTH: usize = 16;
/// Least bytes of one that a person chose.
const LEAST: usize = 8;

/// What a sender shows to its receiver: at the start of each connection, and in the
/// bytes of each datagram. The receiver drops whatever comes without it, so that
/// strays and strangers appear in no figure. It is not encryption: whoever sees the
/// traffic sees the secret.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret([u8; LENGTH]);

/// A secret that is too short or too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a secret has {LEAST} to {LENGTH} bytes")]
pub struct SecretLength;

impl Secret {
    /// Bytes of a secret.
    pub const LENGTH: usize = LENGTH;

    /// A secret that nobody can guess.
    ///
    /// # Errors
    ///
    /// The system has no random numbers.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; LENGTH];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// What is shown.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl FromStr for Secret {
    type Err = SecretLength;

    fn from_str(text: &str) -> Result<Self, SecretLength> {
        if !(LEAST..=LENGTH).contains(&text.len()) {
            return Err(SecretLength);
        }
        let mut bytes = [0; LENGTH];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Self(bytes))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_neither_short_nor_printed() {
        assert_eq!("1234567".parse::<Secret>(), Err(SecretLength));
        assert_eq!("12345678901234567".parse::<Secret>(), Err(SecretLength));
        let secret: Secret = "correct horse".parse().unwrap();
        assert!(!format!("{secret:?}").contains("horse"));
        assert_ne!(Secret::random(), Secret::random());
    }
}

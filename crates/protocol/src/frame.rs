//! Frames: a big-endian length of four bytes, then that many bytes of JSON.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest frame in bytes. A result with its histograms has some 100 KB; a much
/// larger length means noise on the stream, not a frame (S-7).
pub const MAX_FRAME: u32 = 16 << 20;

/// A frame that could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The stream ended between frames: the other side is gone.
    #[error("the other side closed the stream")]
    Closed,
    /// The stream failed, or ended within a frame.
    #[error("the control stream failed: {0}")]
    Io(#[from] io::Error),
    /// The length is beyond [`MAX_FRAME`].
    #[error(
        "a frame claims to have {0} bytes: this is not a Plumbline agent, or something else writes to its output"
    )]
    TooLong(u32),
    /// The content is not the message that was expected; the beginning of why.
    #[error("a frame cannot be read: {0}; both sides must be the same version of Plumbline")]
    Content(String),
}

impl From<serde_json::Error> for FrameError {
    fn from(error: serde_json::Error) -> Self {
        Self::Content(plumbline_record::why_unreadable(&error))
    }
}

/// Writes one message and flushes.
pub fn write_frame<T: Serialize>(
    stream: &mut (impl Write + ?Sized),
    message: &T,
) -> Result<(), FrameError> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let length = u32::try_from(bytes.len() - 4).unwrap_or(u32::MAX);
    if length > MAX_FRAME {
        return Err(FrameError::TooLong(length));
    }
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    stream.write_all(&bytes)?;
    stream.flush()?;
    Ok(())
}

/// Reads one message; waits for it.
pub fn read_frame<T: DeserializeOwned>(stream: &mut (impl Read + ?Sized)) -> Result<T, FrameError> {
    let mut length = [0; 4];
    match stream.read(&mut length[..1]) {
        Ok(0) => return Err(FrameError::Closed),
        Ok(_) => stream.read_exact(&mut length[1..])?,
        Err(e) if e.kind() == io::ErrorKind::Interrupted => stream.read_exact(&mut length)?,
        Err(e) => return Err(e.into()),
    }
    let length = u32::from_be_bytes(length);
    if length > MAX_FRAME {
        return Err(FrameError::TooLong(length));
    }
    let mut bytes = Vec::new();
    // `take` bounds the allocation by what arrives, not by the claimed length.
    stream.take(length.into()).read_to_end(&mut bytes)?;
    if bytes.len() < length as usize {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Ok(serde_json::from_slice(&bytes)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_message_comes_back() {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, &("rr", 5)).unwrap();
        write_frame(&mut bytes, &("http", 6)).unwrap();
        let mut stream = bytes.as_slice();
        assert_eq!(
            read_frame::<(String, u32)>(&mut stream).unwrap(),
            ("rr".into(), 5)
        );
        assert_eq!(
            read_frame::<(String, u32)>(&mut stream).unwrap(),
            ("http".into(), 6)
        );
        assert!(matches!(
            read_frame::<(String, u32)>(&mut stream),
            Err(FrameError::Closed)
        ));
    }

    #[test]
    fn a_length_without_end_is_refused() {
        let error = read_frame::<u32>(&mut [0xff_u8; 64].as_slice()).unwrap_err();
        assert!(matches!(error, FrameError::TooLong(u32::MAX)), "{error}");
    }

    #[test]
    fn of_a_long_frame_that_is_none_the_beginning_is_said() {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, &"ä".repeat(5_000)).unwrap();
        let error = read_frame::<u32>(&mut bytes.as_slice()).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("invalid type: string"), "{said}");
        assert!(said.chars().count() < 400, "{said}");
    }

    #[test]
    fn a_cut_frame_is_an_error() {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, &"a message").unwrap();
        bytes.pop();
        assert!(matches!(
            read_frame::<String>(&mut bytes.as_slice()),
            Err(FrameError::Io(_))
        ));
    }

    proptest! {
        #[test]
        fn noise_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_frame::<crate::ToAgent>(&mut bytes.as_slice());
            let _ = read_frame::<crate::FromAgent>(&mut bytes.as_slice());
        }
    }
}

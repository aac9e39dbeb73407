//! A train: numbered datagrams of one size.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use plumbline_protocol::{MtuAnswer, SentTrain, TrainOrder};
use plumbline_sys::clock::now_ns;
use plumbline_sys::socket::{Socket, is_too_long};

/// Bytes that tell what a datagram is.
const HEAD_BYTES: usize = 16;
/// How often answers are looked for behind the last datagram.
const LOOK: Duration = Duration::from_millis(2);
/// Most bytes of a packet of IP.
const MOST_BYTES: u32 = 65_535;

/// What every datagram begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TrainHead {
    pub(super) key: u64,
    pub(super) train: u32,
    pub(super) number: u32,
}

impl TrainHead {
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (key, rest) = bytes.split_first_chunk()?;
        let (train, rest) = rest.split_first_chunk()?;
        let (number, _) = rest.split_first_chunk()?;
        Some(Self {
            key: u64::from_be_bytes(*key),
            train: u32::from_be_bytes(*train),
            number: u32::from_be_bytes(*number),
        })
    }

    pub(super) fn write(self, bytes: &mut [u8]) {
        let head = [
            &self.key.to_be_bytes()[..],
            &self.train.to_be_bytes(),
            &self.number.to_be_bytes(),
        ];
        bytes[..HEAD_BYTES].copy_from_slice(&head.concat());
    }
}

/// Bytes of the headers of IP and UDP.
fn header_bytes(to: SocketAddr) -> u32 {
    if to.is_ipv4() { 28 } else { 48 }
}

/// Sends a train, unless stopped before, and waits for what is answered.
///
/// # Errors
///
/// Sizes that no packet has. What the path does is no error.
pub(super) fn send(order: &TrainOrder, stop: &AtomicBool) -> Result<SentTrain, Box<dyn Error>> {
    let payload = order.packet_bytes.saturating_sub(header_bytes(order.to)) as usize;
    if payload < HEAD_BYTES || order.packet_bytes > MOST_BYTES {
        let bytes = order.packet_bytes;
        return Err(format!("a packet of {bytes} bytes cannot be sent to {}", order.to).into());
    }
    let mut seen = SentTrain::default();
    if let Err(error) = sent(order, payload, stop, &mut seen) {
        seen.error = Some(error.to_string());
    }
    Ok(seen)
}

fn sent(
    order: &TrainOrder,
    payload: usize,
    stop: &AtomicBool,
    seen: &mut SentTrain,
) -> io::Result<()> {
    let socket = Socket::connect_udp(order.to, None)?;
    socket.forbid_fragments()?;
    seen.limit = socket.path_mtu()?.min(MOST_BYTES as usize) as u32;
    let mut datagram = vec![0x5a; payload];
    let begun = now_ns();
    for number in 0..order.count {
        let due = begun + order.gap_ns * u64::from(number);
        thread::sleep(Duration::from_nanos(due.saturating_sub(now_ns())));
        if stop.load(Ordering::SeqCst) {
            return Ok(());
        }
        let head = TrainHead {
            key: order.key,
            train: order.train,
            number,
        };
        head.write(&mut datagram);
        listen(&socket, seen)?;
        match send_one(&socket, &datagram) {
            Ok(()) => seen.sent += 1,
            Err(error) if is_too_long(&error) => {
                seen.refused += u32::from(!listen(&socket, seen)?);
            }
            Err(error) => seen.error = Some(error.to_string()),
        }
    }
    let until = now_ns() + order.wait_ns;
    while now_ns() < until && seen.answer.is_none() {
        thread::sleep(LOOK);
        listen(&socket, seen)?;
    }
    Ok(())
}

/// Sends one datagram; waits where the own queue is full.
fn send_one(socket: &Socket, datagram: &[u8]) -> io::Result<()> {
    loop {
        match socket.send(datagram) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(LOOK),
            Err(error) => return Err(error),
        }
    }
}

/// Reads what was answered, and says whether anybody but the own stack has.
fn listen(socket: &Socket, seen: &mut SentTrain) -> io::Result<bool> {
    let mut is_answered = false;
    // Else the next send would fail with it.
    if let Some(error) = socket.take_error()?
        && !is_too_long(&error)
    {
        seen.error = Some(error.to_string());
    }
    while let Some(told) = socket.too_long()? {
        if let Some(router) = told.router {
            let mtu = told.mtu;
            seen.answer = Some(MtuAnswer { mtu, router });
            is_answered = true;
        }
    }
    Ok(is_answered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_comes_back() {
        let head = TrainHead {
            key: 0x0123_4567_89ab_cdef,
            train: 7,
            number: 99,
        };
        let mut bytes = [0; 40];
        head.write(&mut bytes);
        assert_eq!(TrainHead::read(&bytes), Some(head));
        assert_eq!(TrainHead::read(&bytes[..15]), None);
    }
}

//! The server's loop for datagrams.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use plumbline_experiment::Workload;
use plumbline_record::ServeResult;
use plumbline_sys::clock::now_ns;
use plumbline_sys::socket::{Messages, Socket};

use crate::EngineError;
use crate::bulk::{MeterMessage, Tally};
use crate::codec::{FixedFrame, FrameReader};
use crate::driver::{Driver, Epoll, WatchMode};
use crate::pattern::{Pattern, PayloadDirection};

/// Longest time between two looks at the stop flag.
const NAP_NS: u64 = 5_000_000;
/// Datagrams per system call.
const BATCH: usize = 64;
/// Bytes asked for as receive buffer; the kernel may give less.
const BUFFER: usize = 4 << 20;

/// Answers `rr` over UDP until asked to stop.
pub(super) fn answer(
    spec: &Workload,
    socket: Socket,
    stop: &AtomicBool,
) -> Result<ServeResult, EngineError> {
    let request = FixedFrame::new(PayloadDirection::Request, spec.request_size);
    let response = FixedFrame::new(PayloadDirection::Response, spec.response_size);
    // One byte more than a request, so that a longer one is noticed.
    let mut requests = Messages::new(BATCH, request.size() + 1);
    let mut responses = Messages::new(BATCH, response.size());
    let mut seen = ServeResult::default();
    receive(socket, &mut requests, stop, |socket, requests| {
        responses.clear();
        for index in 0..requests.len() {
            let bytes = requests.get(index);
            seen.bytes_received += bytes.len() as u64;
            match request.read(&mut FrameReader::default(), bytes) {
                (taken, Some(message)) if message.intact && taken == bytes.len() => {
                    seen.requests += 1;
                    let reply = responses.push_reply(requests, index, response.size());
                    response.write(message.seq, 0, reply);
                }
                _ => seen.corrupt += 1,
            }
        }
        let sent = send_all(socket, &mut responses);
        seen.bytes_sent += (sent * response.size()) as u64;
    })?;
    Ok(seen)
}

/// Counts `datagram` messages until asked to stop, each by itself, whether it
/// arrived alone or in a train.
pub(super) fn count(
    spec: &Workload,
    socket: Socket,
    stop: &AtomicBool,
) -> Result<ServeResult, EngineError> {
    // A refusal is harmless: the buffer then has its default size.
    let _ = socket.set_buffers(BUFFER, BUFFER);
    let size = spec.request_size as usize;
    let pattern = Pattern::new(PayloadDirection::Request, size);
    // A kernel before 5.0 refuses: trains are then split before they arrive.
    let mut messages = match socket.accept_trains() {
        Ok(()) => Messages::for_trains(BATCH),
        Err(_) => Messages::new(BATCH, size + 1),
    };
    let mut tally = Tally::default();
    let mut seen = ServeResult::default();
    receive(socket, &mut messages, stop, |_, messages| {
        let now = now_ns();
        for index in 0..messages.len() {
            // An empty datagram is not ours, and has no bytes to check.
            seen.corrupt += u64::from(messages.get(index).is_empty());
            for bytes in messages.datagrams(index) {
                let length = bytes.len() as u64;
                seen.bytes_received += length;
                let sound = match MeterMessage::read(&pattern, bytes, size) {
                    Some(message) if message.measured => tally.count(message, length, now),
                    Some(message) => tally.admit(message.flow),
                    None => false,
                };
                seen.corrupt += u64::from(!sound);
            }
        }
    })?;
    seen.datagrams = Some(tally.counts());
    Ok(seen)
}

/// Hands every batch of datagrams to `digest` until asked to stop.
pub(super) fn receive(
    socket: Socket,
    batch: &mut Messages,
    stop: &AtomicBool,
    mut digest: impl FnMut(&Socket, &Messages),
) -> Result<(), EngineError> {
    let mut io = Epoll::relaxed(1, 0).map_err(EngineError::system("setting up epoll"))?;
    io.insert(0, socket, WatchMode::Queue)
        .map_err(EngineError::system("watching the datagram socket"))?;
    while !stop.load(Ordering::Relaxed) {
        let now = now_ns();
        io.wait(now, now + NAP_NS)
            .map_err(EngineError::system("waiting for datagrams"))?;
        let Some(socket) = io.socket(0) else {
            break;
        };
        loop {
            match socket.receive_messages(batch) {
                Ok(_) => digest(socket, batch),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                // An answer came back as undeliverable: one client is gone, the
                // others are not.
                Err(_) => break,
            }
            if !batch.is_full() || stop.load(Ordering::Relaxed) {
                break;
            }
        }
    }
    Ok(())
}

/// Sends all messages and gives how many went out. A refused one is lost, as if
/// on the way: its client sees no answer.
fn send_all(socket: &Socket, messages: &mut Messages) -> usize {
    let (mut from, mut sent) = (0, 0);
    while from < messages.len() {
        match socket.send_messages(messages, from) {
            Ok(count) => {
                from += count;
                sent += count;
            }
            Err(_) => from += 1,
        }
    }
    sent
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::time::Duration;

    use plumbline_experiment::WorkloadKind;

    use super::*;

    const SIZE: usize = 64;

    /// What is counted of a train of 8 that lacks number 5, comes with a wrong
    /// byte in number 2, and is sent twice.
    #[test]
    fn inside_a_train_loss_and_damage_are_found_message_by_message() {
        let socket = Socket::bind_udp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), false).unwrap();
        let near = Socket::connect_udp(socket.local_addr().unwrap(), None).unwrap();
        let pattern = Pattern::new(PayloadDirection::Request, SIZE);
        let mut train = Messages::new(8, SIZE);
        for seq in [0, 1, 2, 3, 4, 6, 7, 8] {
            let message = MeterMessage {
                seq,
                flow: 0,
                session: 9,
                measured: true,
            };
            let bytes = train.push(SIZE);
            message.write(&pattern, bytes);
            if seq == 2 {
                bytes[SIZE - 1] ^= 1;
            }
        }
        let spec = Workload {
            request_size: SIZE as u32,
            ..Workload::of_kind(WorkloadKind::Datagram)
        };
        let stop = AtomicBool::new(false);
        let seen = std::thread::scope(|scope| {
            let counting = scope.spawn(|| count(&spec, socket, &stop));
            for _ in 0..2 {
                near.send_train(&train, 0, 8).unwrap();
            }
            std::thread::sleep(Duration::from_millis(200));
            stop.store(true, Ordering::Relaxed);
            counting.join().unwrap().unwrap()
        });
        let counts = seen.datagrams.unwrap();
        assert_eq!(seen.corrupt, 2);
        assert_eq!((counts.received, counts.duplicated), (7, 7));
        assert_eq!(counts.missing, 2, "the damaged one and the one left out");
    }
}

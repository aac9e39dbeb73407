//! The server's loop for datagrams.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use plumbline_record::ServeResult;
use plumbline_sys::clock::now_ns;
use plumbline_sys::socket::{Messages, Socket};

use super::service::think;
use crate::bulk::{MeterMessage, Tally};
use crate::codec::{FixedFrame, FrameReader};
use crate::driver::{Driver, Epoll, WatchMode};
use crate::pattern::{Pattern, PayloadDirection};
use crate::{EngineError, ServePlan};

/// Longest time between two looks at the stop flag.
const NAP_NS: u64 = 5_000_000;
/// Datagrams per system call.
const BATCH: usize = 64;
/// Bytes asked for as receive buffer; the kernel may give less.
const BUFFER: usize = 4 << 20;

/// Answers `rr` over UDP until asked to stop.
pub(super) fn answer(
    plan: &ServePlan,
    socket: Socket,
    stop: &AtomicBool,
) -> Result<ServeResult, EngineError> {
    let (spec, secret) = (&plan.workload, plan.secret);
    let request = FixedFrame::new(PayloadDirection::Request, spec.request_size, secret);
    let response = FixedFrame::new(PayloadDirection::Response, spec.response_size, secret);
    // One byte more than a request, so that a longer one is noticed.
    let mut requests = Messages::new(BATCH, request.size() + 1);
    let mut responses = Messages::new(BATCH, response.size());
    let mut seen = ServeResult::default();
    receive(socket, &mut requests, stop, |socket, requests| {
        for index in 0..requests.len() {
            let bytes = requests.get(index);
            let seq = match request.read(&mut FrameReader::default(), bytes) {
                (taken, Some(message)) if message.intact && taken == bytes.len() => message.seq,
                _ if !request.is_marked(bytes) => {
                    seen.strangers += 1;
                    continue;
                }
                _ => {
                    seen.corrupt += 1;
                    seen.bytes_received += bytes.len() as u64;
                    continue;
                }
            };
            seen.requests += 1;
            seen.bytes_received += bytes.len() as u64;
            think(spec.think_ns);
            let reply = responses.push_reply(requests, index, response.size());
            response.write(seq, 0, reply);
            if spec.think_ns > 0 {
                seen.bytes_sent += send_all(socket, &mut responses);
            }
        }
        seen.bytes_sent += send_all(socket, &mut responses);
    })?;
    Ok(seen)
}

/// Counts `datagram` messages until asked to stop, each by itself, whether it
/// arrived alone or in a train.
pub(super) fn count(
    plan: &ServePlan,
    socket: Socket,
    stop: &AtomicBool,
) -> Result<ServeResult, EngineError> {
    // A refusal is harmless: the buffer then has its default size.
    let _ = socket.set_buffers(BUFFER, BUFFER);
    let size = plan.workload.request_size as usize;
    let pattern = Pattern::new(PayloadDirection::Request, size, plan.secret);
    let is_ours = |bytes: &[u8]| plan.secret.is_none() || MeterMessage::is_marked(&pattern, bytes);
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
            if messages.get(index).is_empty() {
                // It is not ours, and has no bytes to check.
                let (strangers, corrupt) = (&mut seen.strangers, &mut seen.corrupt);
                *if is_ours(&[]) { corrupt } else { strangers } += 1;
            }
            for bytes in messages.datagrams(index) {
                let length = bytes.len() as u64;
                let sound = match MeterMessage::read(&pattern, bytes, size) {
                    Some(message) if message.measured => tally.count(message, length, now),
                    Some(message) => tally.admit(message.flow),
                    None if !is_ours(bytes) => {
                        seen.strangers += 1;
                        continue;
                    }
                    None => false,
                };
                seen.bytes_received += length;
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

/// Sends all messages, of which none are left then, and gives how many bytes went
/// out. A refused one is lost, as if on the way: its client sees no answer.
fn send_all(socket: &Socket, messages: &mut Messages) -> u64 {
    let (mut from, mut sent) = (0, 0);
    while from < messages.len() {
        match socket.send_messages(messages, from) {
            Ok(count) => {
                let out = from..from + count;
                sent += out
                    .map(|index| messages.get(index).len() as u64)
                    .sum::<u64>();
                from += count;
            }
            Err(_) => from += 1,
        }
    }
    messages.clear();
    sent
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::time::Duration;

    use plumbline_experiment::{Workload, WorkloadKind};

    use super::*;

    const SIZE: usize = 64;

    /// What is counted of a train of 8 that lacks number 5, comes with a wrong
    /// byte in number 2, and is sent twice.
    #[test]
    fn inside_a_train_loss_and_damage_are_found_message_by_message() {
        let socket = Socket::bind_udp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), false).unwrap();
        let near = Socket::connect_udp(socket.local_addr().unwrap(), None).unwrap();
        let pattern = Pattern::new(PayloadDirection::Request, SIZE, None);
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
        let plan = ServePlan::new(spec, socket.local_addr().unwrap());
        let stop = AtomicBool::new(false);
        let seen = std::thread::scope(|scope| {
            let counting = scope.spawn(|| count(&plan, socket, &stop));
            for _ in 0..2 {
                near.send_train(&train, 0, 8).unwrap();
            }
            // All is in its socket, and it looks every few milliseconds.
            std::thread::sleep(Duration::from_secs(1));
            stop.store(true, Ordering::Relaxed);
            counting.join().unwrap().unwrap()
        });
        let counts = seen.datagrams.unwrap();
        assert_eq!(seen.corrupt, 2);
        assert_eq!((counts.received, counts.duplicated), (7, 7));
        assert_eq!(counts.missing, 2, "the damaged one and the one left out");
    }
}

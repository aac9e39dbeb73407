//! The end of a path that takes what is sent over it.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use plumbline_protocol::TakenTrain;

use super::train::TrainHead;

/// How often a taker looks whether it is over.
const LOOK: Duration = Duration::from_millis(20);
/// How often it looks for a new connection.
const ACCEPT: Duration = Duration::from_millis(2);
/// Longest wait for the key of a connection.
const KEY: Duration = Duration::from_secs(2);
/// Ports that are tried until one is free for both UDP and TCP.
const ATTEMPTS: usize = 20;
/// Connections at a time, trains, and datagrams of a train that are remembered.
const MOST_CONNECTIONS: usize = 16;
const MOST_TRAINS: usize = 1_024;
const MOST_NUMBERS: u32 = 100_000;

/// What comes to an address with a key, by train. Over when it is dropped.
pub(super) struct Taking {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    key: u64,
    is_over: AtomicBool,
    trains: Mutex<BTreeMap<u32, TrainRecord>>,
}

#[derive(Default)]
struct TrainRecord {
    seen: Vec<bool>,
    /// One behind the greatest number that has come.
    next: u32,
    taken: TakenTrain,
}

impl Taking {
    /// Begins to take what comes to an address with this key.
    pub(super) fn begin(address: SocketAddr, key: u64) -> io::Result<Self> {
        let (datagrams, listener) = bind(address)?;
        let address = datagrams.local_addr()?;
        let shared = Arc::new(Shared {
            key,
            is_over: AtomicBool::new(false),
            trains: Mutex::default(),
        });
        datagrams.set_read_timeout(Some(LOOK))?;
        listener.set_nonblocking(true)?;
        let (of_datagrams, of_streams) = (Arc::clone(&shared), Arc::clone(&shared));
        thread::spawn(move || take_datagrams(&datagrams, &of_datagrams));
        thread::spawn(move || take_streams(&listener, &of_streams));
        Ok(Self { address, shared })
    }

    /// Where it takes.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What has come of a train so far.
    pub(super) fn taken(&self, train: u32) -> TakenTrain {
        let trains = lock(&self.shared.trains);
        trains.get(&train).map(|it| it.taken).unwrap_or_default()
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
    }
}

/// One port for both protocols.
fn bind(address: SocketAddr) -> io::Result<(UdpSocket, TcpListener)> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let datagrams = UdpSocket::bind(address)?;
        match TcpListener::bind(datagrams.local_addr()?) {
            Ok(listener) => return Ok((datagrams, listener)),
            Err(error) if error.kind() != ErrorKind::AddrInUse || attempt == ATTEMPTS => {
                return Err(error);
            }
            Err(_) => {}
        }
    }
}

fn take_datagrams(socket: &UdpSocket, shared: &Shared) {
    let mut packet = vec![0; 1 << 16];
    while !shared.is_over.load(Ordering::SeqCst) {
        // What fails here has come too, as an error of something that was sent.
        let Ok(length) = socket.recv(&mut packet) else {
            continue;
        };
        let head = TrainHead::read(&packet[..length]);
        if let Some(head) = head.filter(|it| it.key == shared.key) {
            shared.count(head);
        }
    }
}

impl Shared {
    fn count(&self, head: TrainHead) {
        let mut trains = lock(&self.trains);
        let is_known = trains.contains_key(&head.train);
        if head.number >= MOST_NUMBERS || (!is_known && trains.len() >= MOST_TRAINS) {
            return;
        }
        trains.entry(head.train).or_default().count(head.number);
    }
}

impl TrainRecord {
    fn count(&mut self, number: u32) {
        let at = number as usize;
        if self.seen.len() <= at {
            self.seen.resize(at + 1, false);
        }
        if std::mem::replace(&mut self.seen[at], true) {
            self.taken.repeated += 1;
            return;
        }
        self.taken.arrived += 1;
        self.taken.overtaken += u32::from(number < self.next);
        self.next = self.next.max(number + 1);
    }
}

fn take_streams(listener: &TcpListener, shared: &Arc<Shared>) {
    let open = Arc::new(());
    while !shared.is_over.load(Ordering::SeqCst) {
        match listener.accept() {
            Ok((stream, _)) if Arc::strong_count(&open) <= MOST_CONNECTIONS => {
                let (shared, open) = (Arc::clone(shared), Arc::clone(&open));
                thread::spawn(move || {
                    // Whatever ends it, the sender sees.
                    let _ = take_stream(stream, &shared);
                    drop(open);
                });
            }
            _ => thread::sleep(ACCEPT),
        }
    }
}

fn take_stream(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(KEY))?;
    let mut key = [0; 8];
    stream.read_exact(&mut key)?;
    if u64::from_be_bytes(key) != shared.key {
        return Ok(());
    }
    stream.set_read_timeout(Some(LOOK))?;
    let mut bytes = vec![0; 1 << 18];
    while !shared.is_over.load(Ordering::SeqCst) {
        match stream.read(&mut bytes) {
            Ok(0) => break,
            Err(error) if !is_pause(&error) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn is_pause(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_late_missing_or_twice_is_told_apart() {
        let mut record = TrainRecord::default();
        for number in [0, 1, 4, 3, 5, 5] {
            record.count(number);
        }
        let taken = TakenTrain {
            arrived: 5,
            repeated: 1,
            overtaken: 1,
        };
        assert_eq!(record.taken, taken);
    }
}

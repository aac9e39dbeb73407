//! The first packets of pods: a peer on the other node waits for those that come out of a
//! pod, and sends to it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use plumbline_sys::clock::{ClockPair, now_ns, sleep_until_ns};
use plumbline_sys::poll::{Interest, Poller, Trigger};
use plumbline_sys::socket::Socket;

use crate::error::LabError;
use crate::topology::{Pod, Topology};

/// From one packet to the next, until one has arrived.
const GAP_NS: u64 = 1_000_000;

/// Where packets are missing for so long that a gap is less than this share of it, the gap is
/// this share: many pods that wait long must not keep the machine from what they wait for.
const SHARE: u64 = 32;

/// How often whoever waits for packets looks whether there is still something to wait for.
const LOOK_NS: u64 = 20_000_000;

/// Bytes of a packet: the mark of the launch, and the position of the pod.
const MARK: usize = 16;

/// The peers of the pods of one launch, and when the first packet of each pod arrived there.
pub(super) struct PacketWatch {
    /// By the node of the pods that they are for.
    peers: Vec<WaitingPeer>,
    /// By pod, nanoseconds of the monotonic clock; 0 for none.
    arrived: Vec<AtomicU64>,
    mark: u64,
}

/// A socket that waits in a pod that stands.
struct WaitingPeer {
    socket: Socket,
    at: SocketAddr,
}

/// What was seen of a pod once it was attached, by the monotonic clock.
pub(super) struct FollowedPod {
    /// When the first packets were sent both ways.
    pub(super) probed_ns: u64,
    /// When one of it reached its peer.
    pub(super) first_out_ns: Option<u64>,
    /// When one of its peer reached it.
    pub(super) first_in_ns: Option<u64>,
}

/// Says that it is over when it is dropped, also by a panic.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl PacketWatch {
    /// Lets a pod that stands on each node wait for packets of those on the other one.
    pub(super) fn new(topology: &Topology, pods: usize) -> Result<Self, LabError> {
        let for_node = |node: usize| {
            let mut standing = topology.pods.iter();
            let Some(peer) = standing.find(|it| it.node != node) else {
                return Err(LabError::Watch(io::Error::other(
                    "no pod stands on the other node",
                )));
            };
            let opened = peer.place.namespace.run(|| -> io::Result<WaitingPeer> {
                let socket = Socket::bind_udp(SocketAddr::new(peer.reached_by(), 0), false)?;
                let at = socket.local_addr()?;
                stamp(&socket);
                Ok(WaitingPeer { socket, at })
            })?;
            opened.map_err(LabError::Watch)
        };
        Ok(Self {
            peers: (0..topology.nodes.len())
                .map(for_node)
                .collect::<Result<Vec<_>, LabError>>()?,
            arrived: (0..pods).map(|_| AtomicU64::new(0)).collect(),
            mark: now_ns(),
        })
    }

    /// Dates what arrives at the peers while something is done.
    pub(super) fn during<T>(&self, work: impl FnOnce() -> T) -> Result<T, LabError> {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let listening = scope.spawn(|| self.listen(&is_over));
            let over = Over(&is_over);
            let done = work();
            drop(over);
            let listened = listening.join();
            let listened = listened.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            listened.map_err(LabError::Watch)?;
            Ok(done)
        })
    }

    fn listen(&self, is_over: &AtomicBool) -> io::Result<()> {
        let mut poller = Poller::new(self.peers.len())?;
        for (token, peer) in self.peers.iter().enumerate() {
            let socket = peer.socket.as_fd();
            poller.add(socket, token as u64, Interest::Read, Trigger::Level)?;
        }
        while !is_over.load(Ordering::SeqCst) {
            poller.wait(LOOK_NS)?;
            for peer in &self.peers {
                while let Some((at, ns)) = self.next(&peer.socket) {
                    if let Some(first) = self.arrived.get(at) {
                        // A later one changes nothing.
                        let _ = first.compare_exchange(0, ns, Ordering::SeqCst, Ordering::SeqCst);
                    }
                }
            }
        }
        Ok(())
    }

    /// Sends from a pod and to it until one packet has arrived each way, or until the
    /// deadline.
    pub(super) fn follow(
        &self,
        at: usize,
        pod: &Pod,
        deadline_ns: u64,
        interrupted: &AtomicBool,
    ) -> Result<FollowedPod, LabError> {
        let peer = &self.peers[pod.node];
        let is_over = || now_ns() > deadline_ns || interrupted.load(Ordering::SeqCst);
        let opened = pod.place.namespace.run(|| begin(pod, peer.at, is_over))?;
        let socket = opened.map_err(LabError::Watch)?;
        let packet = self.packet(at);
        self.exchange(at, &socket, peer, &packet, is_over)
            .map_err(LabError::Watch)
    }

    fn exchange(
        &self,
        at: usize,
        socket: &Socket,
        peer: &WaitingPeer,
        packet: &[u8],
        is_over: impl Fn() -> bool,
    ) -> io::Result<FollowedPod> {
        let address = socket.local_addr()?;
        let mut poller = Poller::new(1)?;
        poller.add(socket.as_fd(), 0, Interest::Read, Trigger::Level)?;
        let mut seen = FollowedPod {
            probed_ns: now_ns(),
            first_out_ns: None,
            first_in_ns: None,
        };
        loop {
            // Where there is no way yet, that is an error, and tried again.
            if seen.first_out_ns.is_none() {
                let _ = socket.send(packet);
            }
            if seen.first_in_ns.is_none() {
                let _ = peer.socket.send_to(packet, address);
            }
            let waited_ns = now_ns().saturating_sub(seen.probed_ns);
            poller.wait((waited_ns / SHARE).max(GAP_NS))?;
            while let Some((_, ns)) = self.next(socket) {
                seen.first_in_ns.get_or_insert(ns.max(seen.probed_ns));
            }
            let out_ns = self.arrived[at].load(Ordering::SeqCst);
            seen.first_out_ns = (out_ns > 0).then_some(out_ns.max(seen.probed_ns));
            let is_up = seen.first_out_ns.is_some() && seen.first_in_ns.is_some();
            if is_up || is_over() {
                return Ok(seen);
            }
        }
    }

    fn packet(&self, at: usize) -> [u8; MARK] {
        let mut packet = [0; MARK];
        packet[..8].copy_from_slice(&self.mark.to_le_bytes());
        packet[8..].copy_from_slice(&(at as u64).to_le_bytes());
        packet
    }

    /// The next packet of this launch that has arrived: of which pod, and when. What is no
    /// packet of it is skipped. An error is one of packets that found no way before.
    fn next(&self, socket: &Socket) -> Option<(usize, u64)> {
        let mut packet = [0; MARK + 1];
        loop {
            match socket.receive_stamped(&mut packet) {
                Ok((MARK, stamp)) if packet[..8] == self.mark.to_le_bytes() => {
                    let mut at = [0; 8];
                    at.copy_from_slice(&packet[8..MARK]);
                    let to_monotonic = |ns| ClockPair::now().to_monotonic(ns);
                    let ns = stamp.map_or_else(now_ns, to_monotonic);
                    return Some((u64::from_le_bytes(at) as usize, ns));
                }
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }
}

/// Opens the socket of a pod, as soon as its address can be used.
fn begin(pod: &Pod, to: SocketAddr, is_over: impl Fn() -> bool) -> io::Result<Socket> {
    loop {
        match Socket::connect_udp(to, Some(pod.reached_by())) {
            Ok(socket) => {
                stamp(&socket);
                return Ok(socket);
            }
            Err(error) if is_over() => return Err(error),
            Err(_) => sleep_until_ns(now_ns() + GAP_NS),
        }
    }
}

/// Has the kernel date what arrives. Where it does not, the moment of reading counts.
fn stamp(socket: &Socket) {
    let _ = socket.enable_stamps();
}

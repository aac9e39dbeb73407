//! The other end of a load.

mod connection;
mod datagrams;
mod echo;
mod service;
mod sink;
mod streams;
mod web;

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::thread;

use plumbline_experiment::WorkloadKind;
use plumbline_record::ServeResult;
use plumbline_sys::cpu;
use plumbline_sys::socket::Socket;

use crate::plan::controlled;
use crate::worker::bind_to_cpu;
use crate::{EngineError, ServePlan};
#[cfg(any(test, fuzzing))]
pub(crate) use web::answers_to;

/// A server that answers one workload, and checks what it is asked.
///
/// It never sends more than its plan's response size for each request (S-5), and over
/// UDP no more than it was sent to who does not know the plan's secret. What it holds
/// for a connection does not depend on how much that asks for.
pub struct Responder {
    plan: ServePlan,
    sockets: Vec<Socket>,
    address: SocketAddr,
}

impl Responder {
    /// Listens, but answers nothing before [`run`](Self::run).
    ///
    /// # Errors
    /// When the plan cannot be served, the port is taken, or the address is
    /// not this machine's.
    pub fn bind(plan: &ServePlan) -> Result<Self, EngineError> {
        plan.check()?;
        // How many clients will connect is not known, so the limit goes as high
        // as possible.
        cpu::allow_open_files(u64::MAX)
            .map_err(EngineError::system("raising the open-file limit"))?;
        let threads = plan.threads.max(1);
        let mut sockets = Vec::with_capacity(threads);
        let mut address = plan.listen;
        for _ in 0..threads {
            let socket = listen(plan, address, threads > 1)
                .map_err(|source| EngineError::listen(plan.listen, source))?;
            // The first socket may have let the kernel pick; the others join it.
            address = socket
                .local_addr()
                .map_err(EngineError::system("getsockname"))?;
            sockets.push(socket);
        }
        Ok(Self {
            plan: plan.clone(),
            sockets,
            address,
        })
    }

    /// Where it listens; the port is the real one even if the plan said 0.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop` becomes true, then returns what it saw within 100
    /// ms.
    ///
    /// # Errors When a thread cannot be bound to its CPU, or the kernel refuses
    /// to wait for sockets. An error on a single connection ends only that
    /// connection.
    pub fn run(self, stop: &AtomicBool) -> Result<ServeResult, EngineError> {
        let plan = &self.plan;
        thread::scope(|scope| {
            let threads: Vec<_> = self
                .sockets
                .into_iter()
                .enumerate()
                .map(|(index, socket)| {
                    scope.spawn(move || {
                        bind_to_cpu(&plan.cpus, index)?;
                        serve(plan, socket, stop)
                    })
                })
                .collect();
            let mut all = ServeResult {
                server: "plumbline".to_owned(),
                ..ServeResult::default()
            };
            for thread in threads {
                let part = thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
                all.add(&part);
            }
            Ok(all)
        })
    }
}

fn listen(plan: &ServePlan, at: SocketAddr, reuse_port: bool) -> std::io::Result<Socket> {
    if plan.workload.is_udp() {
        Socket::bind_udp(at, reuse_port)
    } else {
        controlled(Socket::listen_tcp(at, reuse_port)?, plan.congestion)
    }
}

fn serve(plan: &ServePlan, socket: Socket, stop: &AtomicBool) -> Result<ServeResult, EngineError> {
    let spec = &plan.workload;
    match spec.kind {
        WorkloadKind::Rr if spec.is_udp() => datagrams::answer(plan, socket, stop),
        WorkloadKind::Rr | WorkloadKind::Crr => {
            streams::serve(echo::Echo::new(spec), plan, socket, stop)
        }
        WorkloadKind::Http => streams::serve(web::Web::new(spec), plan, socket, stop),
        WorkloadKind::Stream => streams::serve(sink::Sink::new(), plan, socket, stop),
        WorkloadKind::Datagram => datagrams::count(plan, socket, stop),
    }
}

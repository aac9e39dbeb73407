//! The machines: each is connected when first needed, and again when the
//! connection was cut.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use plumbline_protocol::{LookOrder, Sight};

use crate::connection::ConnectedHost;
use crate::error::HostsError;
use crate::options::HostsOptions;
use crate::program::Program;
use crate::ssh::{ControlSocket, Ssh};

/// Machines that are connected at the same time: each takes a copy of the program
/// through this machine's link.
const AT_ONCE: usize = 16;

/// All machines of a run, by number.
pub(crate) struct Machines {
    options: HostsOptions,
    program: Option<Arc<Program>>,
    all: Vec<Machine>,
}

impl Machines {
    /// Touches nothing yet.
    pub(crate) fn new(options: HostsOptions) -> Self {
        Self {
            all: options.between.hosts().map(Machine::new).collect(),
            options,
            program: None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// The host as it was given.
    pub(crate) fn host(&self, number: usize) -> &str {
        &self.all[number].host
    }

    /// What a machine looked like when it was first connected; `None` before.
    pub(crate) fn sight(&self, number: usize) -> Option<&Sight> {
        self.all.get(number)?.sight.as_ref()
    }

    /// Whether two are one kernel, by the number that it drew when it was booted.
    pub(crate) fn are_one(&self, ends: [usize; 2]) -> bool {
        let boots = ends.map(|number| self.sight(number).map(|sight| &*sight.boot));
        boots[0].is_some_and(|boot| !boot.is_empty()) && boots[0] == boots[1]
    }

    /// Connects those of these machines that never were, some at a time, and looks
    /// at each.
    pub(crate) fn connect(&mut self, numbers: &BTreeSet<usize>) -> Result<(), HostsError> {
        if self.program.is_none() {
            self.program = Some(Arc::new(Program::open(&self.options.program)?));
        }
        let is_new = |number: &usize| self.sight(*number).is_none();
        let new: Vec<usize> = numbers.iter().copied().filter(is_new).collect();
        for some in new.chunks(AT_ONCE) {
            for (&number, sight) in some.iter().zip(self.look_at(some)?) {
                self.all[number].sight = Some(sight);
            }
        }
        Ok(())
    }

    fn look_at(&self, numbers: &[usize]) -> Result<Vec<Sight>, HostsError> {
        thread::scope(|scope| {
            let look = |&number: &usize| {
                scope.spawn(move || -> Result<Sight, HostsError> {
                    let connection = self.connected(number)?;
                    Ok(connection.observer().look(LookOrder::default())?)
                })
            };
            let threads: Vec<_> = numbers.iter().map(look).collect();
            let joined = threads.into_iter().map(|thread| {
                let result = thread.join();
                result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            // All are waited for before an error counts.
            joined.collect::<Vec<_>>().into_iter().collect()
        })
    }

    /// The connection of a machine, made anew when it was cut: the trial that
    /// noticed has failed, the next ones need not.
    pub(crate) fn connected(&self, number: usize) -> Result<Arc<ConnectedHost>, HostsError> {
        let machine = &self.all[number];
        let slot = machine.connection.lock();
        let mut slot = slot.unwrap_or_else(PoisonError::into_inner);
        if let Some(connection) = slot.as_ref().filter(|one| one.observer().is_alive()) {
            return Ok(Arc::clone(connection));
        }
        *slot = None;
        let Some(program) = &self.program else {
            return Err(HostsError::on(&machine.host, "it was not connected yet"));
        };
        let ssh = Ssh {
            host: machine.host.clone(),
            config: self.options.ssh_config.clone(),
            socket: ControlSocket::new()?,
        };
        let connection = Arc::new(ConnectedHost::open(ssh, &self.options, program)?);
        *slot = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// Ends everything on them, and gives what could not be ended.
    pub(crate) fn close(&mut self) -> Vec<HostsError> {
        let taken = self.all.iter_mut().filter_map(|machine| {
            let slot = machine.connection.get_mut();
            slot.unwrap_or_else(PoisonError::into_inner).take()
        });
        let closed = taken.filter_map(|connection| connection.close().err());
        closed.collect()
    }
}

/// A machine that is reached by ssh.
struct Machine {
    host: String,
    connection: Mutex<Option<Arc<ConnectedHost>>>,
    /// What it looked like when it was connected first.
    sight: Option<Sight>,
}

impl Machine {
    /// Touches nothing yet.
    fn new(host: &str) -> Self {
        Self {
            host: host.to_owned(),
            connection: Mutex::default(),
            sight: None,
        }
    }
}

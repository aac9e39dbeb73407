//! What a device has that can be turned: read, set, and set back.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plumbline_sys::cpu;
use plumbline_sys::ethtool::{self, Offload};
use plumbline_sys::netlink::LinkNumber;

use super::path::{Refused, TunedPath, is_so_already};
use crate::error::LabError;
use crate::journal::Journal;
use crate::place::Place;

/// Something of a device that has a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Knob {
    /// 1 where it is on.
    Offload(Offload),
    Number(LinkNumber),
    /// 1 where what the device receives is handled by any CPU of the process (RPS).
    Receivers,
    /// By how many queues it sends.
    SendQueues,
    /// 1 where each CPU of the process sends by a queue that it shares with as few others as there
    /// are queues for (XPS).
    Senders,
    /// 1 where it receives in threads of its own, which a veth can where it merges (GRO).
    Threads,
}

/// A setting could not be taken back.
#[derive(Debug, thiserror::Error)]
#[error("a setting cannot be taken back: {0}; it goes with the namespace")]
struct UndoError(String);

impl Knob {
    /// Turns it on every device of the path that lets it be turned, of which there has to
    /// be one.
    pub(super) fn turn(
        self,
        path: &TunedPath<'_>,
        wanted: Option<impl Into<u64>>,
        journal: &mut Journal,
    ) -> Result<(), Refused> {
        let Some(wanted) = wanted.map(Into::into) else {
            return Ok(());
        };
        let mut refusal = None;
        let mut is_changed = false;
        for hop in path.hops {
            match self.turn_on(&hop.place, &hop.device, wanted) {
                Ok(old) if old == wanted => {}
                Ok(old) => {
                    is_changed = true;
                    let (place, device) = (Arc::clone(&hop.place), hop.device.clone());
                    journal.undo_by(move || {
                        let undone = self.set(&place, &device, old);
                        let error = undone.err().map(|it| LabError::network(UndoError(it)));
                        error.into_iter().collect()
                    });
                }
                Err(reason) => {
                    refusal.get_or_insert(format!(
                        "no device of the path can have it changed: in {}, `{}`: {reason}",
                        hop.place.name, hop.device
                    ));
                }
            }
        }
        match refusal {
            _ if is_changed => Ok(()),
            Some(reason) => Err(Refused::Lacks(reason)),
            None => Err(is_so_already()),
        }
    }

    /// Gives what it was before.
    fn turn_on(self, place: &Place, device: &str, wanted: u64) -> Result<u64, String> {
        let old = self.get(place, device)?;
        if old != wanted {
            self.set(place, device, wanted)?;
            let now = self.get(place, device)?;
            if now != wanted {
                return Err(format!("the kernel leaves it at {now}"));
            }
        }
        Ok(old)
    }

    fn get(self, place: &Place, device: &str) -> Result<u64, String> {
        match self {
            Self::Offload(offload) => {
                let read = place.namespace.run(|| offload.is_on(device));
                let on = read.map_err(said)?.map_err(said)?;
                Ok(on.into())
            }
            Self::Number(number) => {
                let link = place.link(device).map_err(said)?;
                let value = link.numbers.get(&number).copied();
                let lacks = || format!("this kernel has no {number:?} of devices");
                Ok(value.ok_or_else(lacks)?.into())
            }
            Self::Receivers => in_sysfs(place, || spread(&queue_files(device, "rx-", "rps_cpus")?)),
            Self::SendQueues => {
                let read = place.namespace.run(|| ethtool::send_queues(device));
                Ok(read.map_err(said)?.map_err(said)?.into())
            }
            Self::Senders => in_sysfs(place, || spread(&sender_files(device)?)),
            Self::Threads => {
                // What tunnels receive waits in queues of one CPU each, which threads on
                // others empty at the same time: packets get stuck.
                if place.link(device).map_err(said)?.kind != "veth" {
                    return Err("threads may empty the queues of pairs of veth only".to_owned());
                }
                in_sysfs(place, || Ok(u64::from(read(&threads_of(device))? != "0")))
            }
        }
    }

    fn set(self, place: &Place, device: &str, value: u64) -> Result<(), String> {
        match self {
            Self::Offload(offload) => {
                let done = place.namespace.run(|| offload.switch(device, value != 0));
                done.map_err(said)?.map_err(said)
            }
            Self::Number(number) => {
                let index = place.index(device).map_err(said)?;
                let value = u32::try_from(value).map_err(said)?;
                let set = place.ask(|it| it.set_link_number(index, number, value));
                set.map_err(said)
            }
            Self::Receivers => in_sysfs(place, || {
                let files = queue_files(device, "rx-", "rps_cpus")?;
                set_cpus(&files, value != 0, |_, cpus| cpus.to_vec())
            }),
            Self::SendQueues => {
                let count = u32::try_from(value).map_err(said)?;
                let set = place
                    .namespace
                    .run(|| ethtool::set_send_queues(device, count));
                set.map_err(said)?.map_err(said)
            }
            Self::Senders => in_sysfs(place, || {
                let files = sender_files(device)?;
                set_cpus(&files, value != 0, |at, cpus| share(cpus, at, files.len()))
            }),
            Self::Threads => in_sysfs(place, || write(&threads_of(device), &value.to_string())),
        }
    }
}

fn said(error: impl ToString) -> String {
    error.to_string()
}

/// Does something where `/sys` shows the devices of a place.
fn in_sysfs<T: Send>(
    place: &Place,
    work: impl FnOnce() -> Result<T, String> + Send,
) -> Result<T, String> {
    place.namespace.run_with_sysfs(work).map_err(said)?
}

fn of_device(device: &str) -> PathBuf {
    PathBuf::from("/sys/class/net").join(device)
}

fn threads_of(device: &str) -> PathBuf {
    of_device(device).join("threaded")
}

/// A file of each queue of a device whose name begins so.
fn queue_files(device: &str, prefix: &str, file: &str) -> Result<Vec<PathBuf>, String> {
    let queues = fs::read_dir(of_device(device).join("queues")).map_err(said)?;
    let mut files = Vec::new();
    for queue in queues {
        let queue = queue.map_err(said)?;
        if queue.file_name().to_string_lossy().starts_with(prefix) {
            files.push(queue.path().join(file));
        }
    }
    files.sort();
    match files.is_empty() {
        true => Err(format!("this kernel shows no queues {prefix}* of it")),
        false => Ok(files),
    }
}

fn sender_files(device: &str) -> Result<Vec<PathBuf>, String> {
    let files = queue_files(device, "tx-", "xps_cpus")?;
    match files.len() {
        1 => Err("it has one queue to send by".to_owned()),
        _ => Ok(files),
    }
}

/// 1 where every one of these masks names a CPU.
fn spread(files: &[PathBuf]) -> Result<u64, String> {
    let is_none = |mask: &str| mask.chars().all(|digit| digit == '0' || digit == ',');
    for file in files {
        if is_none(&read(file)?) {
            return Ok(0);
        }
    }
    Ok(1)
}

/// Names in each of these files the CPUs of the process that are its queue's, or none.
fn set_cpus(
    files: &[PathBuf],
    any: bool,
    of_queue: impl Fn(usize, &[usize]) -> Vec<usize>,
) -> Result<(), String> {
    let cpus = match any {
        true => cpu::allowed().map_err(said)?,
        false => Vec::new(),
    };
    let mut files = files.iter().enumerate();
    files.try_for_each(|(at, file)| write(file, &mask(&of_queue(at, &cpus))))
}

/// The CPUs of one of several queues: each has its share of them, or where there are more queues
/// one.
fn share(cpus: &[usize], queue: usize, queues: usize) -> Vec<usize> {
    let only = queue % cpus.len().max(1);
    let places = cpus.iter().copied().enumerate();
    let own = places.filter(|(at, _)| at % queues == queue || *at == only);
    own.map(|(_, cpu)| cpu).collect()
}

/// A set of CPUs as the kernel reads it: words of 32 bits, the highest first.
fn mask(cpus: &[usize]) -> String {
    let most = cpus.iter().max().copied().unwrap_or_default();
    let mut words = vec![0u32; most / 32 + 1];
    for cpu in cpus {
        words[cpu / 32] |= 1 << (cpu % 32);
    }
    let words: Vec<String> = words.iter().rev().map(|it| format!("{it:x}")).collect();
    words.join(",")
}

fn read(file: &Path) -> Result<String, String> {
    let text = fs::read_to_string(file).map_err(said)?;
    Ok(text.trim().to_owned())
}

fn write(file: &Path, value: &str) -> Result<(), String> {
    fs::write(file, value).map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            format!("needs root on the machine itself ({error})")
        }
        _ => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_cpus_is_written_as_the_kernel_reads_it() {
        assert_eq!(mask(&[0, 1]), "3");
        assert_eq!(mask(&[2, 33]), "2,4");
        assert_eq!(mask(&[]), "0");
    }

    #[test]
    fn cpus_share_queues_and_no_queue_is_without_one() {
        let shares = |cpus: &[usize], queues| -> Vec<Vec<usize>> {
            let of = |queue| share(cpus, queue, queues);
            (0..queues).map(of).collect()
        };
        assert_eq!(shares(&[0, 1], 2), [[0], [1]]);
        assert_eq!(shares(&[4, 5, 6], 2), [vec![4, 6], vec![5]]);
        assert_eq!(shares(&[4, 5], 3), [[4], [5], [4]]);
    }
}

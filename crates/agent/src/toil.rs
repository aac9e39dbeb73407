//! Work beside a path while that is measured, by a neighbour that sends nothing.

use std::error::Error;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use plumbline_experiment::Family;
use plumbline_protocol::{Toil, ToilOrder, Toiled};
use plumbline_sys::clock::{now_ns, sleep_unless};
use plumbline_sys::cpu::process_time;
use plumbline_sys::netlink::{NetlinkError, NftExpression, NftFamily, NftVerdict, NftWriter};

/// Steps of computing between two looks at the clock: a few microseconds.
const STEPS: u64 = 10_000;
/// The table of the rules that come and go, the chain that all packets meet, and the one
/// of the policy.
const TABLE: &str = "plumbline-churn";
const FORWARD: &str = "forward";
const POLICY: &str = "policy";
/// Rules of the policy, one for each peer.
const RULES: u8 = 10;
/// What is selected by the policy, and its peers: addresses of documentation (RFC 5737,
/// RFC 3849), which nobody has.
const OTHERS: [u8; 4] = [192, 0, 2, 1];
const OTHERS_V6: [u8; 4] = [0x20, 0x01, 0x0d, 0xb8];

/// Finds out whether the calling thread's namespace lets something be done.
///
/// # Errors
///
/// [`NetlinkError::is_unsupported`] on a kernel without nftables.
pub fn try_toil(toil: Toil) -> Result<(), NetlinkError> {
    match toil {
        Toil::Compute => Ok(()),
        Toil::Rules(family) => {
            let mut rules = ChurnedRules::lay(family)?;
            rules.come_and_go()?;
            rules.remove()
        }
    }
}

/// Carries out an order; `begins` says that all is ready, and gives the start.
pub(crate) fn toil(
    order: &ToilOrder,
    begins: &dyn Fn() -> Option<u64>,
    stop: &AtomicBool,
) -> Result<Toiled, Box<dyn Error>> {
    let mut rules = match order.toil {
        Toil::Compute => None,
        Toil::Rules(family) => Some(ChurnedRules::lay(family)?),
    };
    let start_ns = begins().ok_or("the work was stopped before it began")?;
    let mut step = || match &mut rules {
        None => {
            compute();
            Ok(0)
        }
        Some(rules) => rules.come_and_go(),
    };
    let mut toiled = Toiled::default();
    for slice in &order.turns {
        sleep_unless(stop, start_ns + slice.begin_ns);
        work_until(start_ns + slice.open_ns, stop, &mut step)?;
        let before = process_time()?;
        toiled.done += work_until(start_ns + slice.end_ns, stop, &mut step)?;
        let spent = process_time()?.since(before);
        toiled.cpu.user_ns += spent.user_ns;
        toiled.cpu.system_ns += spent.system_ns;
        toiled.window_ns += slice.recorded_ns();
    }
    if order.toil == Toil::Compute {
        toiled.done = toiled.cpu.user_ns + toiled.cpu.system_ns;
    }
    if let Some(rules) = rules {
        rules.remove()?;
    }
    match stop.load(Ordering::SeqCst) {
        true => Err("the work was stopped before its last slice ended".into()),
        false => Ok(toiled),
    }
}

/// Does something until then, again and again; gives how much was done.
fn work_until(
    end_ns: u64,
    stop: &AtomicBool,
    step: &mut impl FnMut() -> Result<u64, NetlinkError>,
) -> io::Result<u64> {
    let mut done = 0;
    while now_ns() < end_ns && !stop.load(Ordering::Relaxed) {
        done += step().map_err(io::Error::other)?;
    }
    Ok(done)
}

fn compute() {
    let mut sum = 0u64;
    for step in 0..STEPS {
        sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(step));
    }
}

/// A chain that all forwarded packets meet, and a policy behind it that comes and goes.
struct ChurnedRules {
    writer: NftWriter,
    family: Family,
}

impl ChurnedRules {
    fn lay(family: Family) -> Result<Self, NetlinkError> {
        let kind = match family {
            Family::V4 => NftFamily::Ip,
            Family::V6 => NftFamily::Ip6,
        };
        let mut writer = NftWriter::open(kind, TABLE)?;
        writer.empty_table()?;
        writer.forward_chain(FORWARD)?;
        writer.commit()?;
        Ok(Self { writer, family })
    }

    /// Adds the policy in one transaction, and removes it in another one; gives how many
    /// rules that were.
    fn come_and_go(&mut self) -> Result<u64, NetlinkError> {
        use NftExpression::{Destination, Equal, Source, Verdict};
        let selected = self.address(0);
        self.writer.chain(POLICY)?;
        for number in 1..=RULES {
            let peer = self.address(number);
            let bytes = peer.len() as u32;
            self.writer
                .rule(POLICY, &[Source { bytes }, Equal(&peer)])?;
        }
        let to_policy = Verdict(NftVerdict::Jump(POLICY));
        self.writer
            .rule(FORWARD, &[Destination, Equal(&selected), to_policy])?;
        self.writer.commit()?;
        self.writer.empty_chain(FORWARD)?;
        self.writer.remove_chain(POLICY)?;
        self.writer.commit()?;
        Ok(2 * (u64::from(RULES) + 1))
    }

    fn remove(mut self) -> Result<(), NetlinkError> {
        self.writer.remove_table()?;
        self.writer.commit()
    }

    fn address(&self, number: u8) -> Vec<u8> {
        match self.family {
            Family::V4 => {
                let [first, second, third, last] = OTHERS;
                vec![first, second, third, last + number]
            }
            Family::V6 => {
                let mut address = OTHERS_V6.to_vec();
                address.resize(15, 0);
                address.push(number);
                address
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use plumbline_experiment::Slice;
    use plumbline_sys::cpu::thread_time_ns;

    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn computing_takes_a_cpu_in_its_slices_and_none_between_them() {
        let slice = |begin| Slice {
            begin_ns: begin * MS,
            open_ns: (begin + 10) * MS,
            end_ns: (begin + 110) * MS,
        };
        let order = ToilOrder {
            toil: Toil::Compute,
            turns: vec![slice(0), slice(200)],
        };
        let takes_cpu = || {
            let (started, before_ns) = (now_ns(), thread_time_ns());
            let toiled = toil(&order, &|| Some(started), &AtomicBool::new(false)).unwrap();
            assert!(now_ns() - started >= 310 * MS);
            assert_eq!(toiled.window_ns, 200 * MS);
            assert_eq!(toiled.done, toiled.cpu.user_ns + toiled.cpu.system_ns);
            let spent_ns = thread_time_ns() - before_ns;
            assert!(spent_ns < 250 * MS, "it computes between slices");
            toiled.cpu.user_ns >= 50 * MS
        };
        // Others may have the machine for once.
        assert!((0..10).any(|_| takes_cpu()));
    }

    #[test]
    fn one_that_is_stopped_did_not_do_it() {
        let order = ToilOrder {
            toil: Toil::Compute,
            turns: Vec::new(),
        };
        let stopped = toil(&order, &|| None, &AtomicBool::new(true));
        assert!(stopped.is_err());
    }
}

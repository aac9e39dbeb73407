//! All metrics, one row each. To add one, add its row here and what it is called
//! in files to `plumbline_experiment::metric`.

use plumbline_experiment::Task;
use plumbline_experiment::metric::{self, Role};
use plumbline_record::FlowKind;
use plumbline_stats::verdict::Direction;

use super::metric::{Metric, Quantity, Resolution, Value};
use super::unit::Unit;
use super::{cost, launch, programming, rates, survive};

/// All metrics, in the order in which comparisons are listed.
pub static REGISTRY: [Metric; 21] = [
    Metric {
        declared: &metric::LOSS,
        words: "loss",
        key: "sent_per_received",
        unit: Unit::SentPerReceived,
        direction: Direction::LowerIsBetter,
        quantity: Quantity::Loss,
        value: Value::Of(|_, observation| rates::sent_per_received(observation)),
        margin: 0.005,
        resolution: Resolution::Fine,
        phrase: "{} lost",
        more: "loss is {} higher",
        less: "loss is {} lower",
        heading: "lost",
        title: "lost",
    },
    Metric {
        declared: &metric::BIT_RATE,
        words: "throughput",
        key: "throughput_bits_per_second",
        unit: Unit::BitsPerSecond,
        direction: Direction::HigherIsBetter,
        quantity: Quantity::Throughput,
        value: Value::Of(|_, observation| rates::throughput_bits_per_second(observation)),
        margin: 0.03,
        resolution: Resolution::Fine,
        phrase: "{}",
        more: "throughput is {} higher",
        less: "throughput is {} lower",
        heading: "throughput",
        title: "rate",
    },
    Metric {
        declared: &metric::REQUEST_RATE,
        words: "throughput",
        key: "throughput_requests_per_second",
        unit: Unit::RequestsPerSecond,
        direction: Direction::HigherIsBetter,
        quantity: Quantity::Throughput,
        value: Value::Of(|_, observation| rates::requests_per_second(observation)),
        margin: 0.03,
        resolution: Resolution::Fine,
        phrase: "{}",
        more: "throughput is {} higher",
        less: "throughput is {} lower",
        heading: "achieved",
        title: "req/s",
    },
    Metric {
        declared: &metric::P50,
        words: "p50",
        key: "p50_over_trials_ns",
        unit: Unit::Nanoseconds,
        direction: Direction::LowerIsBetter,
        quantity: Quantity::Latency,
        value: Value::Median,
        margin: 0.03,
        resolution: Resolution::Fine,
        phrase: "p50 {}",
        more: "the median request takes {} longer",
        less: "the median request takes {} less",
        heading: "p50, median of trials",
        title: "p50",
    },
    Metric {
        declared: &metric::HANDSHAKE,
        words: "handshake",
        key: "handshake_over_trials_ns",
        unit: Unit::Nanoseconds,
        direction: Direction::LowerIsBetter,
        quantity: Quantity::Latency,
        value: Value::Of(|_, observation| rates::handshake_ns(observation)),
        margin: 0.03,
        resolution: Resolution::Fine,
        phrase: "handshake {}",
        more: "a connection takes {} longer to open",
        less: "a connection takes {} less to open",
        heading: "handshake p50, median of trials",
        title: "handshake",
    },
    Metric {
        declared: &metric::CPU_PER_REQUEST,
        words: "CPU per request",
        key: "cpu_ns_per_request",
        unit: Unit::Nanoseconds,
        direction: Direction::LowerIsBetter,
        quantity: Quantity::Cpu,
        value: Value::Of(cost::cpu_per_unit),
        margin: 0.03,
        resolution: Resolution::CpuAccounting,
        phrase: "{} CPU per request",
        more: "a request costs {} more CPU",
        less: "a request costs {} less CPU",
        heading: "CPU per request",
        title: "CPU/req",
    },
    Metric {
        declared: &metric::CPU_PER_BYTE,
        words: "CPU per byte",
        key: "cpu_ns_per_byte",
        unit: Unit::NanosecondsPerByte,
        direction: Direction::LowerIsBetter,
        quantity: Quantity::Cpu,
        value: Value::Of(cost::cpu_per_unit),
        margin: 0.03,
        resolution: Resolution::CpuAccounting,
        phrase: "{} CPU per GB",
        more: "a byte costs {} more CPU",
        less: "a byte costs {} less CPU",
        heading: "CPU per GB",
        title: "CPU/GB",
    },
    Metric {
        declared: &metric::PROCESS_CPU_PER_REQUEST,
        words: "processes' CPU per request",
        key: "process_cpu_ns_per_request",
        unit: Unit::Nanoseconds,
        direction: Direction::LowerIsBetter,
        quantity: Quantity::Processes,
        value: Value::Of(cost::process_cpu_per_unit),
        margin: 0.03,
        resolution: Resolution::Fine,
        phrase: "{} CPU of its processes per request",
        more: "the processes spend {} more CPU on a request",
        less: "the processes spend {} less CPU on a request",
        heading: "processes' CPU per request",
        title: "procs/req",
    },
    Metric {
        declared: &metric::PROCESS_CPU_PER_BYTE,
        words: "processes' CPU per byte",
        key: "process_cpu_ns_per_byte",
        unit: Unit::NanosecondsPerByte,
        direction: Direction::LowerIsBetter,
        quantity: Quantity::Processes,
        value: Value::Of(cost::process_cpu_per_unit),
        margin: 0.03,
        resolution: Resolution::Fine,
        phrase: "{} CPU of its processes per GB",
        more: "the processes spend {} more CPU on a byte",
        less: "the processes spend {} less CPU on a byte",
        heading: "processes' CPU per GB",
        title: "procs/GB",
    },
    Metric {
        declared: &metric::P99,
        words: "p99",
        key: "p99_over_trials_ns",
        unit: Unit::Nanoseconds,
        direction: Direction::LowerIsBetter,
        quantity: Quantity::Latency,
        value: Value::Tail(0.99),
        margin: 0.05,
        resolution: Resolution::Clock,
        phrase: "p99 {}",
        more: "the slowest 1 % of requests take {} longer",
        less: "the slowest 1 % of requests take {} less",
        heading: "p99, median of trials",
        title: "p99",
    },
    Metric {
        declared: &metric::LAST_WRONG,
        words: "last wrong",
        key: "last_wrong_ns",
        unit: Unit::Nanoseconds,
        direction: Direction::LowerIsBetter,
        quantity: Quantity::Event,
        value: Value::Of(|_, observation| programming::last_wrong_ns(observation)),
        margin: 0.1,
        resolution: Resolution::Fine,
        phrase: "acts throughout after {}",
        more: "a change takes {} longer until it acts throughout",
        less: "a change takes {} less until it acts throughout",
        heading: "last wrong, median of trials",
        title: "last wrong",
    },
    Metric {
        declared: &metric::FIRST_RIGHT,
        words: "first right",
        key: "first_right_ns",
        unit: Unit::Nanoseconds,
        direction: Direction::LowerIsBetter,
        quantity: Quantity::Event,
        value: Value::Of(|_, observation| programming::first_right_ns(observation)),
        margin: 0.1,
        resolution: Resolution::Fine,
        phrase: "acts first after {}",
        more: "a change takes {} longer until it first acts",
        less: "a change takes {} less until it first acts",
        heading: "first right, median of trials",
        title: "first right",
    },
    Metric {
        declared: &metric::NETWORK_UP,
        words: "network up",
        key: "network_up_ns",
        unit: Unit::Nanoseconds,
        direction: Direction::LowerIsBetter,
        quantity: Quantity::Event,
        value: Value::Of(|_, observation| launch::network_up_ns(observation)),
        margin: 0.1,
        resolution: Resolution::Fine,
        phrase: "network up after {}",
        more: "a pod waits {} longer for its network",
        less: "a pod waits {} less for its network",
        heading: "network up, median of trials",
        title: "network up",
    },
    Metric {
        declared: &metric::SLOWEST_UP,
        words: "slowest pod",
        key: "slowest_up_ns",
        unit: Unit::Nanoseconds,
        direction: Direction::LowerIsBetter,
        quantity: Quantity::Event,
        value: Value::Of(|_, observation| launch::slowest_up_ns(observation)),
        margin: 0.1,
        resolution: Resolution::Fine,
        phrase: "the slowest pod up after {}",
        more: "the slowest pod waits {} longer for its network",
        less: "the slowest pod waits {} less for its network",
        heading: "slowest pod, median of trials",
        title: "slowest",
    },
    Metric {
        declared: &metric::ATTACH,
        words: "attach",
        key: "attach_ns",
        unit: Unit::Nanoseconds,
        direction: Direction::LowerIsBetter,
        quantity: Quantity::Event,
        value: Value::Of(|_, observation| launch::attach_ns(observation)),
        margin: 0.1,
        resolution: Resolution::Fine,
        phrase: "attached within {}",
        more: "attaching a pod takes {} longer",
        less: "attaching a pod takes {} less",
        heading: "attach, median of trials",
        title: "attach",
    },
    Metric {
        declared: &metric::FIRST_PACKETS,
        words: "first packets",
        key: "first_packets_ns",
        unit: Unit::Nanoseconds,
        direction: Direction::LowerIsBetter,
        quantity: Quantity::Event,
        value: Value::Of(|_, observation| launch::first_packets_ns(observation)),
        margin: 0.1,
        resolution: Resolution::Fine,
        phrase: "first packets after {}",
        more: "the first packets of a pod take {} longer",
        less: "the first packets of a pod take {} less",
        heading: "first packets, median of trials",
        title: "packets",
    },
    Metric {
        declared: &metric::RELEASE,
        words: "release",
        key: "release_ns",
        unit: Unit::Nanoseconds,
        direction: Direction::LowerIsBetter,
        quantity: Quantity::Event,
        value: Value::Of(|_, observation| launch::release_ns(observation)),
        margin: 0.1,
        resolution: Resolution::Fine,
        phrase: "released within {}",
        more: "a pod is gone {} later",
        less: "a pod is gone {} sooner",
        heading: "release, median of trials",
        title: "release",
    },
    Metric {
        declared: &metric::GAP_STANDING,
        words: "gap of standing connections",
        key: "gap_standing_ns",
        unit: Unit::Nanoseconds,
        direction: Direction::LowerIsBetter,
        quantity: Quantity::Event,
        value: Value::MayBeNone {
            of: |observation| survive::gap_ns(observation, FlowKind::Standing),
            least: survive::least_ns,
        },
        margin: 0.1,
        resolution: Resolution::Fine,
        phrase: "longest gap of standing connections {}",
        more: "requests on standing connections have no answer for {} longer",
        less: "requests on standing connections have no answer for {} less",
        heading: "longest gap of standing connections, median of trials",
        title: "gap standing",
    },
    Metric {
        declared: &metric::GAP_NEW,
        words: "gap of new connections",
        key: "gap_new_ns",
        unit: Unit::Nanoseconds,
        direction: Direction::LowerIsBetter,
        quantity: Quantity::Event,
        value: Value::MayBeNone {
            of: |observation| survive::gap_ns(observation, FlowKind::New),
            least: survive::least_ns,
        },
        margin: 0.1,
        resolution: Resolution::Fine,
        phrase: "longest gap of new connections {}",
        more: "there are no new connections for {} longer",
        less: "there are no new connections for {} less",
        heading: "longest gap of new connections, median of trials",
        title: "gap new",
    },
    Metric {
        declared: &metric::GAP_DATAGRAM,
        words: "gap of datagrams",
        key: "gap_datagram_ns",
        unit: Unit::Nanoseconds,
        direction: Direction::LowerIsBetter,
        quantity: Quantity::Event,
        value: Value::MayBeNone {
            of: |observation| survive::gap_ns(observation, FlowKind::Datagram),
            least: survive::least_ns,
        },
        margin: 0.1,
        resolution: Resolution::Fine,
        phrase: "longest gap of datagrams {}",
        more: "datagrams have no answer for {} longer",
        less: "datagrams have no answer for {} less",
        heading: "longest gap of datagrams, median of trials",
        title: "gap datagrams",
    },
    Metric {
        declared: &metric::WELL_AGAIN,
        words: "well again",
        key: "well_again_ns",
        unit: Unit::Nanoseconds,
        direction: Direction::LowerIsBetter,
        quantity: Quantity::Event,
        value: Value::MayBeNone {
            of: survive::well_again_ns,
            least: survive::least_ns,
        },
        margin: 0.1,
        resolution: Resolution::Fine,
        phrase: "well again after {}",
        more: "traffic is well again {} later",
        less: "traffic is well again {} sooner",
        heading: "well again, median of trials",
        title: "well again",
    },
];

/// The metrics of a workload. The primary ones are judged together (C-10).
pub(crate) fn metrics_of(task: &Task) -> impl Iterator<Item = (&'static Metric, Role)> + use<> {
    let (traffic, connects) = (task.traffic(), task.connects());
    REGISTRY
        .iter()
        .filter_map(move |one| Some((one, one.declared.role(traffic, connects)?)))
}

/// Those of a workload's metrics that stand among certain figures.
pub(crate) fn metrics_among(
    task: &Task,
    quantity: Quantity,
) -> impl Iterator<Item = (&'static Metric, Role)> + use<> {
    metrics_of(task).filter(move |(metric, _)| metric.quantity == quantity)
}

/// The metric that orders a workload's treatments: a latency where one counts,
/// otherwise the first that does.
pub(crate) fn leading(task: &Task) -> &'static Metric {
    let primary = || {
        let counts = metrics_of(task).filter(|(_, role)| *role == Role::Primary);
        counts.map(|(metric, _)| metric)
    };
    primary()
        .find(|metric| metric.quantity == Quantity::Latency)
        .or_else(|| primary().next())
        .expect("every task has a metric that counts")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_declared_metric_has_a_row_and_rows_come_in_the_declared_order() {
        let rows: Vec<_> = REGISTRY.iter().map(|one| one.declared).collect();
        assert_eq!(rows, metric::DECLARED);
    }

    #[test]
    fn keys_differ_and_name_their_units() {
        let mut keys: Vec<&str> = REGISTRY.iter().map(|one| one.key).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), REGISTRY.len());
        for one in &REGISTRY {
            assert!(one.key.contains(one.unit.name()), "{}", one.key);
            assert!(one.phrase.contains("{}"), "{}", one.key);
        }
    }
}

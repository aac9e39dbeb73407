//! The flags of `load` and `serve`, and what they ask for. Nothing here touches the system.

mod asked;
mod find_max;
mod value;

use std::net::{IpAddr, SocketAddr};

use clap::Args;
use plumbline_engine::Secret;
use plumbline_experiment::{ArrivalProcess, DriverChoice, WorkloadKind};

pub use find_max::FindMaxArgs;
pub use value::driver;

/// The flags of `plumbline load`.
#[derive(Debug, Args)]
pub struct LoadArgs {
    /// `http://HOST:PORT/PATH` of any server, or HOST:PORT of `plumbline serve`
    pub target: String,
    /// Kind of load; http for a URL, else rr
    #[arg(long, value_parser = value::kind())]
    pub workload: Option<WorkloadKind>,
    /// rr: UDP instead of TCP
    #[arg(long)]
    pub udp: bool,
    /// Requests per second over all connections, such as 5000 or 20k; a closed loop unless given
    #[arg(short, long, value_name = "N", value_parser = plumbline_experiment::typed::number)]
    pub rate: Option<f64>,
    /// Gaps between requests at a rate; poisson unless given
    #[arg(long, value_parser = value::process())]
    pub arrival: Option<ArrivalProcess>,
    /// Concurrent connections
    #[arg(short, long, value_name = "N", default_value_t = 16)]
    pub connections: u32,
    /// Measured window, such as 10s
    #[arg(short, long, value_name = "TIME", default_value = "10s")]
    pub duration: String,
    /// Warm-up before it, which is not recorded
    #[arg(long, value_name = "TIME", default_value = "500ms")]
    pub warm_up: String,
    /// Bytes of a request or message
    #[arg(long, value_name = "BYTES")]
    pub request_size: Option<u32>,
    /// Bytes of a response
    #[arg(long, value_name = "BYTES")]
    pub response_size: Option<u32>,
    /// http: a new connection per request
    #[arg(long)]
    pub no_keep_alive: bool,
    /// Worker threads
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    pub threads: usize,
    /// CPUs to pin the workers to, such as 0,2
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub cpus: Vec<usize>,
    /// Open this many connections per second, instead of all at once
    #[arg(long, value_name = "N")]
    pub ramp: Option<f64>,
    /// Addresses of this machine to connect from, in turn: each has some 28,000 ports
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub source: Vec<IpAddr>,
    /// datagram: hand the kernel up to 64 messages as one train, which it splits late (UDP GSO)
    #[arg(long)]
    pub gso: bool,
    /// stream: send without a copy (MSG_ZEROCOPY); a gain on real devices only
    #[arg(long)]
    pub zerocopy: bool,
    /// Never sleep between requests: takes a whole CPU, but sends on time
    #[arg(long)]
    pub spin: bool,
    /// System interface that carries requests and answers
    #[arg(long, value_parser = value::driver(), default_value = "auto")]
    pub driver: DriverChoice,
    /// Have the kernel timestamp a share of the requests, and print where their time goes
    #[arg(
        long,
        value_name = "SHARE",
        num_args = 0..=1,
        require_equals = true,
        default_value = "off",
        default_missing_value = "1%",
        hide_default_value = true
    )]
    pub timestamps: String,
    /// Shown to a `plumbline serve` that was started with the same one: 8 to 16 bytes
    #[arg(long, value_name = "WORD")]
    pub secret: Option<Secret>,
    /// Seed of the arrivals
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// What to search for instead of offering one rate.
    #[command(flatten)]
    pub find_max: FindMaxArgs,
    /// Allow load to an address that is not loopback, private or reserved for benchmarks
    #[arg(long)]
    pub i_own_this: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The flags of `plumbline serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// ADDRESS:PORT, or only a PORT for loopback; port 0 lets the kernel pick
    #[arg(default_value = "127.0.0.1:7117", value_parser = value::listen)]
    pub listen: SocketAddr,
    /// Kind of load to answer
    #[arg(long, value_parser = value::kind(), default_value = "rr")]
    pub workload: WorkloadKind,
    /// rr: UDP instead of TCP
    #[arg(long)]
    pub udp: bool,
    /// Bytes of a request or message
    #[arg(long, value_name = "BYTES")]
    pub request_size: Option<u32>,
    /// Bytes of a response
    #[arg(long, value_name = "BYTES")]
    pub response_size: Option<u32>,
    /// Threads, each with a socket of its own
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    pub threads: usize,
    /// CPUs to pin the threads to
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub cpus: Vec<usize>,
    /// Compute for this long before each answer, such as 2us: a known cost
    #[arg(long, value_name = "TIME")]
    pub think: Option<String>,
    /// Drop what comes without this word: 8 to 16 bytes, the same as for `load`
    #[arg(long, value_name = "WORD")]
    pub secret: Option<Secret>,
    /// Allow listening where strangers may reach it, on a public address
    #[arg(long)]
    pub i_own_this: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

//! The flags of `load --find-max`.

use clap::Args;
use plumbline_experiment::Limit;

/// The flags of `load --find-max`.
#[derive(Debug, Args)]
pub struct FindMaxArgs {
    /// Search for the highest rate that holds a limit: p99<1ms, loss=0, loss<0.5%
    #[arg(long = "find-max", value_name = "LIMIT", conflicts_with_all = ["rate", "duration"])]
    pub limit: Option<Limit>,
    /// --find-max: length of a trial
    #[arg(long, value_name = "TIME", default_value = "1s", requires = "limit")]
    pub trial: String,
    /// --find-max: trials for each rate; the majority decides
    #[arg(long, value_name = "N", default_value_t = 21, requires = "limit",
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub trials: u32,
    /// --find-max: how close the two bounds must be, in percent of the upper one
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 0.5,
        requires = "limit"
    )]
    pub width: f64,
    /// --find-max: highest rate to offer
    #[arg(
        long,
        value_name = "N",
        default_value = "5M",
        value_parser = plumbline_experiment::typed::number,
        requires = "limit"
    )]
    pub up_to: f64,
}

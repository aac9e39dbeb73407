//! The flags of `plumbline validate`.

use clap::Args;

/// `plumbline validate`.
#[derive(Debug, Args)]
pub struct ValidateArgs {
    /// Alternating pairs of each comparison; the interval needs six
    #[arg(long, value_name = "N", default_value_t = 6)]
    pub pairs: u32,
    /// Measured seconds of each run
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub seconds: u32,
    /// Only these comparisons, such as wrk,stream
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Also print the target of each figure, and whether it is reached
    #[arg(long)]
    pub figures: bool,
    /// Exit with code 1 when a figure misses its target
    #[arg(long)]
    pub strict: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

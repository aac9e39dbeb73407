//! The names of the files in a run directory.

/// The plan and the environment.
pub(super) const RUN_FILE: &str = "run.json";
/// One line per finished trial.
pub(super) const TRIALS_FILE: &str = "trials.jsonl";
/// The searches before the first trial, where loads are shares of a maximum.
pub(super) const SEARCHES_FILE: &str = "searches.jsonl";

//! Judgement to reader: terminal, HTML, Markdown, CSV, JSON, JUnit XML.
//!
//! Everything here is a pure function of run directories, so a report can be
//! made again, on any machine, from what a run left behind.
//!
//! # Brief overview
//!
//! * [`Summary`] is the analysis of one run: what each treatment showed, and
//!   how it compares with its baseline.
//! * [`sentence`] says it in words, [`terminal`], [`html`], [`markdown`],
//!   [`csv`] and [`json`] show it. None of them computes anything: two formats
//!   cannot disagree.
//! * [`compare`] sets runs against each other, and checks stated limits. [`decision`] says
//!   by them whether a network is worse than another, for CI services.
//! * [`spans`] says where the time of a sample of requests went.
//! * [`latency`] has the percentiles of a histogram, [`number`] the way in
//!   which numbers are printed, [`warning`] the words of warnings, [`progress`]
//!   what is said while a run is under way.

pub mod analysis;
pub mod compare;
pub mod csv;
pub mod decision;
pub mod gap_limit;
pub mod html;
pub mod json;
pub mod latency;
pub mod load;
pub mod markdown;
pub mod number;
pub mod progress;
pub mod sentence;
pub mod spans;
pub mod terminal;
pub mod warning;

mod answer;
mod beside;
mod chapter;
mod describe;
mod figures;
mod foreign;
mod launch;
mod law;
mod mesh;
mod object;
mod overview;
mod set_up;
mod spread;
mod survive;

pub use analysis::Summary;

//! Studies in TOML: parsing with located errors, and planning.
//!
//! docs/FORMAT.md describes the file. Unknown keys are errors that list the known ones.
//!
//! - [`wire`]: the tables and keys that all workloads share.
//! - [`source`]: the origin of a study and its conditions.
//! - [`claims`]: statements of the source and the relations that they expect.
//! - [`published`]: tables of the source.
//! - [`advice`]: the recommendation table.
//! - `workload`: dispatch to the module of the workload: `sessions`, `app_cache`, `ramp`,
//!   `kv`, `failover` or `cache_aside`.
//! - `phases`: phases of weighted operations, for workloads that have them.
//! - `faults`: faults in a file that parses.
//! - [`choices`]: command-line choices; `set`: keys of `--set`.
//! - `planning`: the trait of workloads, and planning of a run; `targets`: planning of its targets;
//!   `tiers`: their limits.

pub mod advice;
mod app_cache;
mod cache_aside;
pub mod choices;
pub mod claims;
mod collections;
mod entry_size;
mod failover;
mod faults;
mod kv;
mod phases;
mod planning;
pub mod published;
mod ramp;
mod sessions;
mod set;
pub mod source;
mod targets;
mod tiers;
pub mod wire;
mod workload;

pub use advice::{Advice, AdviceNote, AdviceRow, ShopSize};
pub use app_cache::determined_by_files;
pub(crate) use choices::is_target_name;
pub use choices::{Choices, TargetChoice, is_name_or_label, label, unlabelled};
pub use claims::{Claim, Expectation};
pub use published::{PublishedCell, PublishedFigure, PublishedTable};
pub use ramp::RAMP;
pub use source::Source;
pub use wire::{DefaultScales, Study, StudyTier, StudyWorkload};

/// A fault in a file: its byte offset and description.
type Fault = (usize, String);

/// Error of parsing or planning a study.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum StudyError {
    /// An invalid study file.
    #[error("study `{file}`, line {line}: {problem}")]
    Located {
        /// File name, or name of the shipped study.
        file: String,
        /// Line, from 1.
        line: usize,
        /// The problem and what was expected.
        problem: String,
    },
    /// A command-line choice that does not fit the study.
    #[error("{0}")]
    Choice(String),
}

/// Lists names in backticks: `a`, `b` and `c`.
pub(crate) fn quoted_list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|n| format!("`{n}`")).collect();
    match names.split_last() {
        None => "none".into(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
#[path = "study/sources_tests.rs"]
mod sources_tests;

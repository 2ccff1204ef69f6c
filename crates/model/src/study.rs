//! The TOML a study is written in: read with located errors, then turned into a plan.
//!
//! docs/FORMAT.md describes the file. Unknown keys are errors that list the known ones.
//!
//! - [`wire`]: the file as it is written, but for what is its workload's own.
//! - [`statements`]: its statements and its recommendation table.
//! - `workload`: which module is asked, by workload: `sessions`, `app_cache` or `ramp`.
//! - `phases`: phases of operations by weights, which some workloads have.
//! - `faults`: what makes no sense in a file.
//! - [`choices`]: what a user adds on the command line; `set`: keys of `--set`.
//! - `planning`: what a workload is, and how study and choices become a [`crate::Plan`];
//!   `targets`: its stores.

mod app_cache;
mod beyond_ram;
pub mod choices;
mod failover;
mod faults;
mod phases;
mod planning;
mod ramp;
mod sessions;
mod set;
pub mod statements;
mod targets;
pub mod wire;
mod workload;

pub use app_cache::decided_by_files;
pub use choices::{Choices, TargetChoice};
pub use ramp::RAMP;
pub use statements::{Advice, AdviceRow, Claim, Expectation, HighestRate};
pub use wire::{Study, StudyWorkload};

/// What makes no sense in a file, and its byte offset.
type Fault = (usize, String);

/// A study or a choice that cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum StudyError {
    /// The file is not a study; the text names line and column.
    #[error("study `{file}`, line {line}: {problem}")]
    Located {
        /// File or shipped study.
        file: String,
        /// Line, from 1.
        line: usize,
        /// What is wrong and what was expected.
        problem: String,
    },
    /// A command-line choice does not fit the study.
    #[error("{0}")]
    Choice(String),
}

/// `a`, `b` and `c`, each in backticks.
pub(crate) fn quoted_list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|n| format!("`{n}`")).collect();
    match names.split_last() {
        None => "none".into(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

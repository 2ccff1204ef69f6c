//! Evaluation of a recorded run, and its output to a terminal or as CSV, Markdown, JSON and HTML.
//!
//! Pure functions from a [`Recorded`] run to a [`View`], and from a view to text. Nothing here
//! reads a clock, a file or a socket; build.rs embeds the assets of the page.
//!
//! - [`view`]: the evaluated result as plain data, from which every output is made.
//! - `rules`: the fixed rules of validity, and the measurements that they apply to
//!   (`measurement`); [`limits`]: their limits, each with its reason.
//! - [`judge()`]: makes a view from a record: trials ordered by cell and operation (`series`), rows
//!   (`rows`, `distribution`), comparisons (`pairs`, `hits`), `growth`, `break_even`,
//!   `deletions`, `miss_cost`, `memory_need`, `disk_rate`, `claims` (with `cases`), `advice` with
//!   its `ranking`, `capabilities` of stores apart from speed, and supporting data (`context`,
//!   `data`, `footnotes`, `ending`).
//! - `alone`: summary sentence for a target without comparison.
//! - `answer`: the findings, in sentences of typed pieces.
//! - `ramp`: the knee of a store whose load is raised in stages.
//! - `resources`: memory and disk over time.
//! - `facts`: numbers about stores, and the effect of events on rates.
//! - `search`: results of searches for the highest rate, by the same rules as in the run;
//!   `highest` compares targets by the results of searches and ramps.
//! - `sheet`: sections of a result, shared by `text` and `markdown`.
//! - [`text`], [`csv`], [`markdown`], [`json`], [`html`]: the outputs.
//! - [`calibration`]: the results of `calibrate` as text.
//! - [`compare`]: comparison of two runs.
//! - [`list`]: earlier runs, one line each.
//! - [`sizing`]: servers and memory for a wanted rate, from the results of several runs.

#![expect(
    clippy::format_push_string,
    reason = "outputs are a few kilobytes; write! would give results that cannot fail"
)]

pub mod calibration;
pub mod compare;
pub mod csv;
pub mod hgrm;
pub mod html;
pub mod json;
pub mod junit;
pub mod limits;
pub mod list;
pub mod markdown;
pub mod sizing;
pub mod text;
mod trial_number;
pub mod view;

mod advice;
mod alone;
mod answer;
mod blocks;
mod break_even;
mod cache;
mod capabilities;
mod cases;
mod claims;
mod context;
mod data;
mod deletions;
mod disk_rate;
mod distribution;
mod ending;
mod facts;
mod failover;
mod fault_facts;
mod findings;
mod footnotes;
mod grids;
mod growth;
mod highest;
mod hits;
mod judge;
mod measurement;
mod memory_need;
mod metrics;
mod miss_cost;
mod notes;
mod null;
mod outages;
mod pairs;
mod ramp;
mod ranking;
mod read_back;
mod recorded;
mod requirements;
mod resources;
mod rows;
mod rules;
mod search;
mod section;
mod series;
mod server_roles;
mod servers;
mod shards;
mod sheet;
mod show;
mod standings;
mod table;
mod taken;
mod tiers;
mod workers;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

pub use judge::judge;
pub use recorded::Recorded;
pub use rules::rules;
pub use view::{Rule, View, changed_words};

//! Record to judgement to view to terminal, CSV, Markdown, JSON and one HTML page.
//!
//! Pure: what comes in is a [`Recorded`] run, what goes out is a [`View`] or text made from one.
//! Nothing here reads a clock, a file or a socket; the page's assets are embedded by build.rs.
//!
//! - [`view`]: the judged result as plain data, the one form that every output is made from.
//! - [`mod@rules`]: the fixed rules of validity, each limit with its reason; `checks` applies them
//!   to what was measured (`measurement`), whatever the schedule of its load.
//! - [`judge()`]: record to view, by way of trials ordered by cell and operation (`series`), rows
//!   (`rows`, `distribution`), comparisons (`pairs`, `hits`), `growth`, `validity`, `claims` (with
//!   `cases`), `advice` with its `ranking`, and what stands around them (`context`, `data`,
//!   `notes`).
//! - `ramp`: where a store breaks when its load is raised in stages.
//! - `facts`: numbers about stores, and what events did to rates.
//! - `search`: what a search for the highest rate found, by the same rules as in the run.
//! - [`text`], [`csv`], [`markdown`], [`json`], [`html`]: the outputs.
//! - [`calibration`]: what `calibrate` found, as text.
//! - [`compare`]: two runs next to each other.
//! - [`list`]: earlier runs, a line each.

#![expect(
    clippy::format_push_string,
    clippy::format_collect,
    reason = "outputs are a few kilobytes; write! would give results that cannot fail"
)]

pub mod calibration;
pub mod compare;
pub mod csv;
pub mod html;
pub mod json;
pub mod list;
pub mod markdown;
pub mod rules;
pub mod text;
pub mod view;

mod advice;
mod blocks;
mod cache;
mod cases;
mod checks;
mod claims;
mod context;
mod data;
mod distribution;
mod facts;
mod growth;
mod hits;
mod judge;
mod measurement;
mod metrics;
mod notes;
mod null;
mod outages;
mod pairs;
mod ramp;
mod ranking;
mod read_back;
mod recorded;
mod rows;
mod search;
mod series;
mod show;
mod standings;
mod taken;
mod validity;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

pub use judge::judge;
pub use recorded::{Recorded, TargetState};
pub use rules::{Rule, rules};
pub use view::{View, changed_words};

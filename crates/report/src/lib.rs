//! Record to judgement to view to terminal, CSV, Markdown, JSON and one HTML page.
//!
//! Pure: what comes in is a [`Recorded`] run, what goes out is a [`View`] or text made from one.
//! Nothing here reads a clock, a file or a socket; the page's assets are embedded by build.rs.
//!
//! - [`view`]: the judged result as plain data, the one form that every output is made from.
//! - `rules`: the list of the fixed rules of validity, each with what it is applied to
//!   (`measurement`); [`limits`]: their limits, each with its reason.
//! - [`judge()`]: record to view, by way of trials ordered by cell and operation (`series`), rows
//!   (`rows`, `distribution`), comparisons (`pairs`, `hits`), `growth`, `claims` (with
//!   `cases`), `advice` with its `ranking`, and what stands around them (`context`, `data`,
//!   `footnotes`, `ending`).
//! - `alone`: what a target came to that nothing can be compared with, in a sentence.
//! - `answer`: what was found, in sentences of typed pieces.
//! - `ramp`: where a store breaks when its load is raised in stages.
//! - `facts`: numbers about stores, and what events did to rates.
//! - `search`: what searches for the highest rate found, by the same rules as in the run; `highest`
//!   compares targets by it, and by what ramps found.
//! - `sheet`: sections of a result, made once and shown by both `text` and `markdown`.
//! - [`text`], [`csv`], [`markdown`], [`json`], [`html`]: the outputs.
//! - [`calibration`]: what `calibrate` found, as text.
//! - [`compare`]: two runs next to each other.
//! - [`list`]: earlier runs, a line each.

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
pub mod text;
pub mod view;

mod advice;
mod alone;
mod answer;
mod blocks;
mod cache;
mod cases;
mod claims;
mod context;
mod data;
mod distribution;
mod ending;
mod facts;
mod findings;
mod footnotes;
mod growth;
mod highest;
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
mod requirements;
mod rows;
mod rules;
mod search;
mod section;
mod series;
mod sheet;
mod show;
mod standings;
mod table;
mod taken;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

pub use judge::judge;
pub use recorded::Recorded;
pub use rules::rules;
pub use view::{Rule, View, changed_words};

//! The list of earlier runs: a line each, with the verdict that its summary holds.

use model::Listed;
use serde::Deserialize;

use crate::show::grouped;
use crate::standings::is_part;
use crate::table::{Cell, Column, Line, Table};
use crate::text::table::{Paint, fit, least_width, paragraph, width};
use crate::view::{SearchOutcome, Status, Validity};

/// Columns that targets need at least, so that a few are told.
const TARGETS_MIN: usize = 12;

/// A run as the list tells it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The record.
    pub record: Listed,
    /// When it began, for people.
    pub started: String,
    /// What its summary says; `None` where there is none that can be read.
    pub glance: Option<Glance>,
}

/// What a run came to, of its summary as it was written when the run ended.
#[derive(Clone, Debug, Deserialize)]
pub struct Glance {
    status: Status,
    validity: Validity,
    #[serde(default)]
    searches: Vec<Sought>,
    #[serde(default)]
    cells: Vec<Measured>,
}

/// A row of results.
#[derive(Clone, Debug, Deserialize)]
struct Measured {
    target: String,
    operation: String,
    metrics: Rates,
}

/// Of its metrics the one that is told.
#[derive(Clone, Debug, Deserialize)]
struct Rates {
    rate_per_s: Option<Answer>,
}

#[derive(Clone, Debug, Deserialize)]
struct Sought {
    target: String,
    outcome: SearchOutcome,
    answer: Option<Answer>,
}

#[derive(Clone, Debug, Deserialize)]
struct Answer {
    center: f64,
}

impl Glance {
    /// Reads the JSON of a summary, most of which is passed over; `None` where it is none.
    pub fn read(summary: &[u8]) -> Option<Self> {
        serde_json::from_slice(summary).ok()
    }
}

impl Entry {
    /// Of a complete run whether it may be used. A summary that tells of an earlier end, before the
    /// run was resumed, says nothing.
    fn at_a_glance(&self) -> Option<&Glance> {
        let is_complete = self.record.status == Status::Complete.name();
        let ended = |glance: &&Glance| is_complete && glance.status == Status::Complete;
        self.glance.as_ref().filter(ended)
    }

    fn state(&self) -> &str {
        self.at_a_glance().map_or(self.record.status, |glance| glance.validity.heading())
    }

    /// Targets, those of searches with the rates found and their limits, others with the rate of
    /// the last whole operation, which is named.
    fn told(&self) -> Vec<String> {
        let mut told = self.record.targets.clone();
        let searches = self.at_a_glance().into_iter().flat_map(|glance| &glance.searches);
        for search in searches.filter(|search| search.outcome == SearchOutcome::Found) {
            let target = told.iter_mut().find(|name| **name == search.target);
            if let (Some(answer), Some(target)) = (&search.answer, target) {
                *target += &format!(" {}/s", grouped(answer.center));
            }
        }
        told.extend(self.record.limits.iter().cloned());
        let cells = || self.at_a_glance().into_iter().flat_map(|glance| &glance.cells);
        let Some(last) = cells().rfind(|cell| !is_part(&cell.operation)) else { return told };
        for target in &mut told {
            let own = |cell: &&Measured| cell.operation == last.operation && cell.target == *target;
            let rate = cells().rfind(own).and_then(|cell| cell.metrics.rate_per_s.as_ref());
            if let Some(rate) = rate {
                *target += &format!(" {}/s", grouped(rate.center));
            }
        }
        told.push(last.operation.clone());
        told
    }
}

/// All entries in their order for a terminal of `columns` columns, with or without colours, and
/// below them what killed runs may have left. Where targets do not fit, some are left out for `…`.
pub fn render(entries: &[Entry], columns: usize, colour: bool) -> String {
    let paint = Paint { on: colour };
    let whole = table(entries, |told| told.join(", "));
    let bare = least_width(&table(entries, |_| "-".into()));
    let room = columns.saturating_sub(bare - width(TARGETS));
    let is_cut = least_width(&whole) > columns && room >= TARGETS_MIN;
    let shown = if is_cut { table(entries, |told| shortened(told, room)) } else { whole };
    let mut text = fit(&shown, paint, columns);
    for Listed { run, may_hold_leftovers, .. } in entries.iter().map(|entry| &entry.record) {
        for target in may_hold_leftovers {
            let words = format!(
                "{run} was killed and may have left data in `{target}` (how to remove it: \
                 `cachedyno show {run}`)"
            );
            text += &paragraph("  ! ", 4, &words, columns);
        }
    }
    text
}

/// Name of the last column.
const TARGETS: &str = "targets";

fn table(entries: &[Entry], targets: impl Fn(&[String]) -> String) -> Table {
    let line = |entry: &Entry| {
        let Listed { run, study, scale, changed, .. } = &entry.record;
        let words = [run.as_str(), &entry.started, study, scale].map(Cell::from);
        let changed = if changed.is_empty() { "" } else { ", changed" };
        let told = [format!("{}{changed}", entry.state()), targets(&entry.told())];
        Line::plain(words.into_iter().chain(told.map(Cell::from)))
    };
    let columns = ["run", "started (UTC)", "study", "scale", "state", TARGETS].map(Column::words);
    Table { columns: columns.into(), is_grouped: false, lines: entries.iter().map(line).collect() }
}

/// As many as fit into `room` columns, which are no fewer than [`TARGETS_MIN`]; the first is cut
/// where it is too long itself.
fn shortened(told: &[String], room: usize) -> String {
    let whole = told.join(", ");
    if width(&whole) <= room {
        return whole;
    }
    let some = (1..told.len()).rev().map(|n| told[..n].join(", ") + ", …");
    some.into_iter().find(|text| width(text) <= room).unwrap_or_else(|| {
        let kept: String = whole.chars().take(room.saturating_sub(1)).collect();
        kept + "…"
    })
}

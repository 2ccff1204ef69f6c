//! The list of earlier runs: one line per run, with the validity from its summary.

use model::Listed;
use serde::Deserialize;

use crate::show::grouped;
use crate::standings::is_part;
use crate::table::{Cell, Column, Line, Table};
use crate::text::table::{Paint, fit, least_width, paragraph, width};
use crate::view::{SearchOutcome, Status, Validity};

/// Minimum width of the targets column, enough for a few targets.
const TARGETS_MIN: usize = 12;

/// A run in the list.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The record.
    pub record: Listed,
    /// Formatted start time.
    pub started: String,
    /// Contents of its summary; `None` if there is no readable one.
    pub summary: Option<RunSummary>,
}

/// Results of a run, from the summary written when the run ended.
#[derive(Clone, Debug, Deserialize)]
pub struct RunSummary {
    status: Status,
    validity: Validity,
    #[serde(default)]
    searches: Vec<Sought>,
    #[serde(default)]
    survivals: Vec<Survived>,
    #[serde(default)]
    ramps: Vec<Ramped>,
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

/// The only metric that the list shows.
#[derive(Clone, Debug, Deserialize)]
struct Rates {
    rate_per_s: Option<Answer>,
}

#[derive(Clone, Debug, Deserialize)]
struct Ramped {
    target: String,
    metrics: Knee,
}

/// The only metric of a ramp that the list shows.
#[derive(Clone, Debug, Deserialize)]
struct Knee {
    knee_per_s: Option<Answer>,
}

#[derive(Clone, Debug, Deserialize)]
struct Sought {
    target: String,
    outcome: SearchOutcome,
    answer: Option<Answer>,
}

/// The rate at which a target survives a fault; `None` if at no measured one.
#[derive(Clone, Debug, Deserialize)]
struct Survived {
    target: String,
    rate_per_s: Option<Answer>,
}

#[derive(Clone, Debug, Deserialize)]
struct Answer {
    center: f64,
}

impl RunSummary {
    /// Parses the needed parts of a JSON summary; `None` if it is not a summary.
    pub fn read(summary: &[u8]) -> Option<Self> {
        serde_json::from_slice(summary).ok()
    }
}

impl Entry {
    /// The summary of a complete run. A summary from before the run was resumed is ignored.
    fn complete_summary(&self) -> Option<&RunSummary> {
        let is_complete = self.record.status == Status::Complete.name();
        let ended = |summary: &&RunSummary| is_complete && summary.status == Status::Complete;
        self.summary.as_ref().filter(ended)
    }

    fn state(&self) -> &str {
        self.complete_summary().map_or(self.record.status, |summary| summary.validity.heading())
    }

    /// Targets with their rates: those that survive a fault, for searches the rates found and the
    /// limits, for ramps the knees, else the rates of the last whole operation.
    fn targets(&self) -> Vec<String> {
        let mut names = self.record.targets.clone();
        let summary = || self.complete_summary().into_iter();
        if let Some(survivals) = summary().map(|own| &own.survivals).find(|all| !all.is_empty()) {
            for Survived { target, rate_per_s } in survivals {
                let own = names.iter_mut().filter(|name| *name == target);
                let rate = rate_per_s.as_ref().map(|rate| format!("{}/s", grouped(rate.center)));
                let rate = rate.unwrap_or_else(|| "at no measured rate".into());
                own.for_each(|name| *name += &format!(" {rate}"));
            }
            return labelled(SURVIVES, names);
        }
        let searches = summary().flat_map(|summary| &summary.searches);
        let found = searches.filter(|search| search.outcome == SearchOutcome::Found);
        let found = found.map(|search| (&search.target, &search.answer));
        let ramps = summary().flat_map(|summary| &summary.ramps);
        for (name, rate) in found.chain(ramps.map(|r| (&r.target, &r.metrics.knee_per_s))) {
            let target = names.iter_mut().find(|target| *target == name);
            if let (Some(rate), Some(target)) = (rate, target) {
                *target += &format!(" {}/s", grouped(rate.center));
            }
        }
        let limits = self.record.limits.join(", ");
        let cells = || summary().flat_map(|summary| &summary.cells);
        let Some(last) = cells().rfind(|cell| !is_part(&cell.operation)) else {
            return labelled(&limits, names);
        };
        for target in &mut names {
            let own = |cell: &&Measured| cell.operation == last.operation && cell.target == *target;
            let rate = cells().rfind(own).and_then(|cell| cell.metrics.rate_per_s.as_ref());
            if let Some(rate) = rate {
                *target += &format!(" {}/s", grouped(rate.center));
            }
        }
        labelled(&last.operation, names)
    }
}

/// What the rates of a run with faults at shares of the highest rate are of.
const SURVIVES: &str = "survives a fault";

/// With what the rates are of in front: `p99<1ms: redis 94,000/s`.
fn labelled(label: &str, mut names: Vec<String>) -> Vec<String> {
    if let Some(first) = names.first_mut().filter(|_| !label.is_empty()) {
        *first = format!("{label}: {first}");
    }
    names
}

/// All entries for a terminal of `columns` columns, with or without colours, followed by possible
/// leftovers of killed runs. Targets that do not fit are replaced by `…`.
pub fn render(entries: &[Entry], columns: usize, colour: bool) -> String {
    let paint = Paint { on: colour };
    let whole = table(entries, |names| names.join(", "));
    let bare = least_width(&table(entries, |_| "-".into()));
    let room = columns.saturating_sub(bare - width(TARGETS));
    let is_cut = least_width(&whole) > columns && room >= TARGETS_MIN;
    let shown = if is_cut { table(entries, |names| shortened(names, room)) } else { whole };
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
const TARGETS: &str = "targets and rates";

fn table(entries: &[Entry], targets: impl Fn(&[String]) -> String) -> Table {
    let line = |entry: &Entry| {
        let Listed { run, study, scale, changed, .. } = &entry.record;
        let words = [run.as_str(), &entry.started, study, scale].map(Cell::from);
        let changed = if changed.is_empty() { "" } else { ", changed" };
        let results = [format!("{}{changed}", entry.state()), targets(&entry.targets())];
        Line::plain(words.into_iter().chain(results.map(Cell::from)))
    };
    let columns = ["run", "started (UTC)", "study", "scale", "state", TARGETS].map(Column::words);
    Table { columns: columns.into(), is_grouped: false, lines: entries.iter().map(line).collect() }
}

/// As many targets as fit into `room` columns (at least [`TARGETS_MIN`]); the first is truncated if
/// it alone is too long.
fn shortened(names: &[String], room: usize) -> String {
    let whole = names.join(", ");
    if width(&whole) <= room {
        return whole;
    }
    let some = (1..names.len()).rev().map(|n| names[..n].join(", ") + ", …");
    some.into_iter().find(|text| width(text) <= room).unwrap_or_else(|| {
        let kept: String = whole.chars().take(room.saturating_sub(1)).collect();
        kept + "…"
    })
}

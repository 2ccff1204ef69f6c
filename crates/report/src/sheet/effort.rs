//! Requests per operation of an application cache, and the size of the filled stores.

use super::problems::has_parts;
use crate::section::{Block, Section};
use crate::show;
use crate::table::{Cell, Column, Line, NONE, Table};
use crate::view::{Row, Value, View};
use stats::{format_bytes, format_rate};

/// Columns of [`cells`].
fn columns() -> Vec<Column> {
    let numbers = ["calls/s", "hits", "round trips", "commands", "files"].map(Column::number);
    ["operation", "target"].map(Column::words).into_iter().chain(numbers).collect()
}

/// Index of the first numeric column.
const NUMBERS: usize = 2;

const CALLS: &str = "calls/s: operations by time in calls, summed over clients, as the original \
                     benchmark gives it; the others are means of an operation";
const MEANS: &str = "means of an operation";

/// One line per row with counted effort, then the sizes of the stores.
pub(crate) fn section(view: &View) -> Section {
    let mut table = Table::new(columns(), rows(view).map(cells).map(Line::plain).collect());
    table.remove_empty(NUMBERS, NONE);
    let has_calls = table.columns.iter().any(|column| column.title == "calls/s");
    let mut blocks = Vec::new();
    if !table.lines.is_empty() {
        blocks.extend([Block::table(table), Block::note(if has_calls { CALLS } else { MEANS })]);
        blocks.extend(sizes(view).into_iter().map(Block::item));
    }
    Section { id: "effort", title: "Effort of an operation", blocks }
}

/// Rows with counted effort, except totals of phases with several operations.
fn rows(view: &View) -> impl Iterator<Item = &Row> {
    let counted = |r: &&Row| {
        !has_parts(view, r)
            && ["round_trips_per_op", "files_per_op"].iter().any(|m| r.metrics.contains_key(*m))
    };
    view.cells.iter().filter(counted)
}

/// Cells of a row in the order of [`columns`].
fn cells(row: &Row) -> Vec<Cell> {
    let metric = |name: &str, text: fn(f64) -> String| {
        Cell::value(row.metrics.get(name), |value| text(value.center))
    };
    let number = |n: f64| if n >= 100.0 { format!("{n:.0}") } else { format!("{n:.2}") };
    vec![
        format!("{} {}", row.workload, row.operation).into(),
        Cell::target(&row.target),
        metric("calls_rate_per_s", format_rate),
        metric("hit_ratio", show::share_of_all),
        metric("round_trips_per_op", number),
        metric("commands_per_op", number),
        metric("files_per_op", number),
    ]
}

/// Sizes of each target's filled stores, and stale members in their indexes at the end: a sentence
/// for each per profile and load.
fn sizes(view: &View) -> Vec<String> {
    let taken = |row: &Row| {
        let size = |name: &str, what: &str| {
            let value: &Value = row.metrics.get(name)?;
            Some(format!("{} {what}", format_bytes(value.center as u64)))
        };
        let sizes = [size("store_bytes", "on disk"), size("server_memory_bytes", "of memory")];
        let sizes: Vec<String> = sizes.into_iter().flatten().collect();
        (!sizes.is_empty()).then(|| sizes.join(" and "))
    };
    let left = |row: &Row| Some(format!("{:.0}", row.metrics.get("stale_members")?.center));
    let mut sentences = by_place(view, "filled for", taken);
    sentences.extend(by_place(view, "stale members of tags after", left));
    sentences
}

/// A sentence per profile and load with a text for each target. All phases of a trial have the same
/// text, so it appears once.
fn by_place(view: &View, title: &str, text_of: impl Fn(&Row) -> Option<String>) -> Vec<String> {
    let mut places: Vec<(String, Vec<(&str, String)>)> = Vec::new();
    for row in &view.cells {
        let Some(text) = text_of(row) else { continue };
        let place = format!("{title} {}, {}", row.workload, row.load);
        match places.iter_mut().find(|(known, _)| *known == place) {
            Some((_, targets)) if targets.iter().any(|(name, _)| *name == row.target) => {}
            Some((_, targets)) => targets.push((&row.target, text)),
            None => places.push((place, vec![(&row.target, text)])),
        }
    }
    let sentence = |(place, targets): (String, Vec<(&str, String)>)| {
        let targets: Vec<String> =
            targets.into_iter().map(|(name, text)| format!("{name} {text}")).collect();
        format!("{place}: {}", targets.join("; "))
    };
    places.into_iter().map(sentence).collect()
}

//! What an operation of an application cache asks of its stores, and what the filled stores take.

use super::problems::has_parts;
use super::table::leave_out_empty;
use crate::sheet::{Block, Section, explained};
use crate::show;
use crate::view::{Row, Value, View};
use stats::{format_bytes, format_rate};

/// Column names of [`cells`].
const HEADER: [&str; 7] =
    ["operation", "target", "calls/s", "hits", "round trips", "commands", "files"];

/// The first of them that is a number, and what stands where there is none.
const NUMBERS: usize = 2;
const NONE: &str = "–";

const CALLS: &str = "calls/s: operations by time in calls, summed over clients, as the original \
                     benchmark gives it; the others are means of an operation";
const MEANS: &str = "means of an operation";

/// One line a row that counted its effort, then a line with the sizes of the stores.
pub(crate) fn section(view: &View) -> Section {
    let (mut header, mut lines) = (HEADER.to_vec(), rows(view).map(cells).collect::<Vec<_>>());
    leave_out_empty(&mut header, &mut lines, (NUMBERS, NONE));
    let note = if header.contains(&"calls/s") { CALLS } else { MEANS };
    let mut blocks = explained(header, NUMBERS, lines.into_iter(), note);
    if !blocks.is_empty() {
        blocks.extend(sizes(view).into_iter().map(Block::Item));
    }
    Section { title: "Effort of an operation", blocks }
}

/// Rows that counted their effort, whole phases of several operations left out.
fn rows(view: &View) -> impl Iterator<Item = &Row> {
    let counted = |r: &&Row| {
        !has_parts(view, r)
            && ["round_trips_per_op", "files_per_op"].iter().any(|m| r.metrics.contains_key(*m))
    };
    view.cells.iter().filter(counted)
}

/// Operation with its profile, target, and the metrics in the order of [`HEADER`].
fn cells(row: &Row) -> Vec<String> {
    let metric = |name: &str, text: fn(f64) -> String| {
        row.metrics.get(name).map_or_else(|| NONE.into(), |value| text(value.center))
    };
    let number = |n: f64| if n >= 100.0 { format!("{n:.0}") } else { format!("{n:.2}") };
    vec![
        format!("{} {}", row.workload, row.operation),
        row.target.clone(),
        metric("calls_rate_per_s", format_rate),
        metric("hit_ratio", show::share_of_all),
        metric("round_trips_per_op", number),
        metric("commands_per_op", number),
        metric("files_per_op", number),
    ]
}

/// What each target's stores took when they were filled, and what their indexes still said of
/// records that were gone at the end; a sentence of each for each profile and load.
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

/// What is told of each target, once for a profile and load: every phase of a trial tells the same.
fn by_place(view: &View, title: &str, told: impl Fn(&Row) -> Option<String>) -> Vec<String> {
    let mut places: Vec<(String, Vec<(&str, String)>)> = Vec::new();
    for row in &view.cells {
        let Some(text) = told(row) else { continue };
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

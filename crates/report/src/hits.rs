//! Targets whose hit ratios differ widely: the ratio of their speeds then compares misses with
//! hits, and on most layouts a miss is cheaper than a hit. The same holds for targets of which one
//! refuses records as too large. Rows, comparisons and claims say so.

use model::{Counts, ErrorClass, Workload};

use crate::limits::HITS_APART_MAX;
use crate::show;
use crate::standings::{Group, standings};
use crate::view::{Comparison, Row, View};

/// Appended to a claim that is based on such a ratio.
pub(crate) const CLAIMED: &str = "; the targets found or accepted different shares of the records, \
                                  so misses or refusals are compared with hits or writes";

/// Names of reads: of records, and of keys and values.
const READS: [&str; 2] = ["read", "get"];

/// Hit ratio of a row's reads; for a phase with parts, that of its read part. `None` if nothing was
/// read.
pub(crate) fn share(cells: &[Row], row: &Row) -> Option<f64> {
    let is_read = |operation: &str| {
        operation.split('.').next_back().is_some_and(|name| READS.contains(&name))
    };
    let parts = READS.map(|name| format!("{}.{name}", row.operation));
    let same = |r: &&Row| {
        parts.contains(&r.operation)
            && r.target == row.target
            && r.workload == row.workload
            && r.load == row.load
    };
    let reads = if is_read(&row.operation) { row } else { cells.iter().find(same)? };
    let (found, all) = (reads.counts.ok, reads.counts.ok + reads.counts.miss);
    (all > 0).then(|| found as f64 / all as f64)
}

/// Failures that are a property of the store and not of a run: records of an application cache that
/// are larger than it accepts, without which a shop goes on.
pub(crate) fn refused(workload: &Workload, counts: &Counts) -> u64 {
    if matches!(workload, Workload::AppCache(_)) { too_large(counts) } else { 0 }
}

/// Operations that failed because of the size of their value.
pub(crate) fn too_large(counts: &Counts) -> u64 {
    counts.errors_by_class.get(&ErrorClass::TooLarge).copied().unwrap_or(0)
}

/// Why a comparison compares misses with hits, or refusals with writes; `None` if it does not.
pub(crate) fn apart(cells: &[Row], comparison: &Comparison) -> Option<String> {
    let Comparison { workload, operation, load, a, b, .. } = comparison;
    let row = |target: &String| {
        let here = |r: &&Row| (&r.workload, &r.operation, &r.load) == (workload, operation, load);
        cells.iter().filter(here).find(|r| r.target == *target)
    };
    let (of_a, of_b) = (row(a)?, row(b)?);
    let (one, two) = (refused_share(of_a), refused_share(of_b));
    if (one - two).abs() > HITS_APART_MAX {
        let [one, two] = [one, two].map(show::share_of_all);
        return Some(format!(
            "refusals are compared with writes: {a} refused {one} of the records as too large, \
             {b} {two}"
        ));
    }
    let (one, two) = (share(cells, of_a)?, share(cells, of_b)?);
    ((one - two).abs() > HITS_APART_MAX).then(|| {
        let [one, two] = [one, two].map(show::share_of_all);
        format!("misses are compared with hits: {a} found {one} of what it read, {b} {two}")
    })
}

/// Adds that to the doubts of comparisons.
pub(crate) fn doubt(cells: &[Row], comparisons: &mut [Comparison]) {
    for comparison in comparisons {
        if let Some(why) = apart(cells, comparison) {
            comparison.doubt = Some(match comparison.doubt.take() {
                Some(doubt) => format!("{doubt}; {why}"),
                None => why,
            });
        }
    }
}

/// Adds a footnote to each row of which records were refused, or with a much lower hit ratio than
/// another row. If it is the best of its operation, the rows with a much higher hit ratio get the
/// footnote too.
pub(crate) fn note(view: &mut View) {
    for (row, text) in caveats(view) {
        let known = view.footnotes.iter().position(|note| *note == text);
        let note = known.unwrap_or_else(|| {
            view.footnotes.push(text);
            view.footnotes.len() - 1
        });
        view.cells[row].footnotes.push(note);
    }
}

/// Those footnotes, each with the position of a row that needs it. Without them figures mislead, so
/// a summary shows them, too.
pub(crate) fn caveats(view: &View) -> Vec<(usize, String)> {
    let tables = standings(view);
    // What a fault destroys is a result of its own.
    let has_fault =
        |workload: &str| view.happened.failovers.iter().any(|one| one.workload == workload);
    let tables = tables.iter().filter(|table| !has_fault(table.workload));
    let groups = tables.flat_map(|table| &table.groups);
    groups.flat_map(|group| [marks(view, group), refusals(view, group)].concat()).collect()
}

/// Share of a row's operations that failed because of the size of their value.
fn refused_share(row: &Row) -> f64 {
    too_large(&row.counts) as f64 / row.counts.total().max(1) as f64
}

/// Rows of a group of which the store refused records as too large, each with its footnote.
fn refusals(view: &View, group: &Group<'_>) -> Vec<(usize, String)> {
    let rows = group.standings.iter().map(|standing| standing.row);
    let refused = rows.filter(|row| refused_share(row) > HITS_APART_MAX);
    let mark = |row: &Row| {
        let at = view.cells.iter().position(|r| std::ptr::eq(r, row))?;
        let text = format!(
            "{} {} on {}, {}: {} of the records were refused as too large, and the rate is that of \
             the others",
            row.workload,
            row.operation,
            row.target,
            row.load,
            show::share_of_all(refused_share(row))
        );
        Some((at, text))
    };
    refused.filter_map(mark).collect()
}

/// Hit ratio of the fastest target of a group, if another one found much more.
pub(crate) fn of_fastest(view: &View, group: &Group<'_>) -> Option<f64> {
    let shares = group.standings.iter().filter_map(|s| Some((s, share(&view.cells, s.row)?)));
    let shares: Vec<_> = shares.collect();
    let most = shares.iter().map(|(_, share)| *share).fold(0.0, f64::max);
    let best = shares.iter().find(|(standing, _)| standing.is_best());
    best.map(|(_, share)| *share).filter(|share| most - share > HITS_APART_MAX)
}

/// Positions of rows in the view, each with a footnote that it needs.
fn marks(view: &View, group: &Group<'_>) -> Vec<(usize, String)> {
    let found = group.standings.iter();
    let found = found.filter_map(|s| Some((s.is_best(), s.row, share(&view.cells, s.row)?)));
    let shares: Vec<(bool, &Row, f64)> = found.collect();
    let most = shares.iter().map(|(.., share)| *share).fold(0.0, f64::max);
    let mut found = Vec::new();
    for (best, low, share) in shares.iter().filter(|(.., share)| most - share > HITS_APART_MAX) {
        let text = format!(
            "{} {} on {}, {}: {} of what was read was found, on other targets up to {}; a miss is \
             cheaper than a hit on most layouts, and ratios between them compare the two",
            low.workload,
            low.operation,
            low.target,
            low.load,
            show::share_of_all(*share),
            show::share_of_all(most)
        );
        let concerned = |row: &Row, other: f64| {
            std::ptr::eq(row, *low) || (*best && other - share > HITS_APART_MAX)
        };
        let rows = shares.iter().filter(|(_, row, other)| concerned(row, *other));
        let at = |row: &Row| view.cells.iter().position(|r| std::ptr::eq(r, row));
        found.extend(rows.filter_map(|(_, row, _)| Some((at(row)?, text.clone()))));
    }
    found
}

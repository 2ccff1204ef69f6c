//! How often clients waited for a session's lock, and for how long.

use super::table::{Line, Paint, Table, paragraph};
use crate::view::{Row, View};
use stats::{format_ns, format_percent};

/// One line a target and load at which some lock was waited for, lost or given up.
pub(crate) fn render(view: &View, columns: usize, paint: Paint) -> String {
    let waited = |r: &&Row| {
        let c = &r.counts;
        // Parts of an operation repeat what its own row says.
        !r.operation.contains('.') && c.lock_waits + c.lock_timeouts + c.lock_broken > 0
    };
    let lines: Vec<Line> =
        view.cells.iter().filter(waited).map(|r| Line::Cells(cells(r), false)).collect();
    if lines.is_empty() {
        return String::new();
    }
    let table = Table {
        header: vec!["  target", "load", "waited", "p50", "p99", "longest", "gave up", "lost"],
        right: &[2, 3, 4, 5, 6, 7],
        gap: 2,
        lines,
    };
    let note = "waited: share of opens that found the session's lock taken; gave up: no lock \
                within the handler's tries; lost: the lock was gone or somebody else's before the \
                close";
    let title = paint.bold("Locks of sessions");
    format!("{title}\n{}{}", table.fit(paint, columns), paragraph("", 0, note, columns))
}

fn cells(row: &Row) -> Vec<String> {
    let metric = |name: &str, unit: fn(f64) -> String| {
        row.metrics.get(name).map_or("–".into(), |value| unit(value.center))
    };
    vec![
        format!("  {}", row.target),
        row.load.to_string(),
        metric("lock_wait_share", format_percent),
        metric("lock_wait_ns_p50", format_ns),
        metric("lock_wait_ns_p99", format_ns),
        metric("lock_wait_ns_max", format_ns),
        row.counts.lock_timeouts.to_string(),
        row.counts.lock_broken.to_string(),
    ]
}

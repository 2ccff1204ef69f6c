//! Frequency and duration of waits for session locks.

use crate::section::{Section, explained};
use crate::table::{Cell, Column};
use crate::view::{Row, View};
use stats::{format_ns, format_percent};

const NOTE: &str = "waited: share of opens that found the session's lock taken; gave up: no lock \
                    within the handler's tries; lost: the lock was gone or somebody else's before \
                    the close";

/// One line per target and load with waits for a lock, lost locks or timeouts. Reads through a
/// cache have their own section.
pub(crate) fn section(view: &View) -> Section {
    let waited = |r: &&Row| {
        let c = &r.counts;
        // Parts of an operation repeat its own row.
        !r.operation.contains('.')
            && !r.metrics.contains_key("hit_ratio")
            && c.lock_waits + c.lock_timeouts + c.lock_broken > 0
    };
    let numbers = ["waited", "p50", "p99", "longest", "gave up", "lost"].map(Column::number);
    let columns = ["target", "load"].map(Column::words).into_iter().chain(numbers).collect();
    let rows = view.cells.iter().filter(waited).map(cells);
    Section { id: "locks", title: "Locks of sessions", blocks: explained(columns, rows, NOTE) }
}

fn cells(row: &Row) -> Vec<Cell> {
    let metric = |name: &str, unit: fn(f64) -> String| {
        Cell::value(row.metrics.get(name), |value| unit(value.center))
    };
    let count = |n: u64| Cell::number(n.to_string(), n as f64);
    vec![
        Cell::target(&row.target),
        row.load.to_string().into(),
        metric("lock_wait_share", format_percent),
        metric("lock_wait_ns_p50", format_ns),
        metric("lock_wait_ns_p99", format_ns),
        metric("lock_wait_ns_max", format_ns),
        count(row.counts.lock_timeouts),
        count(row.counts.lock_broken),
    ]
}

//! Reads of a database through a cache: how many found the row there, and what that saved.

use crate::section::{Section, explained};
use crate::show;
use crate::table::{Cell, Column};
use crate::view::{Row, View};

const NOTE: &str = "hits: share of the cache's answers that had the row; queries saved: share of \
                    the reads that did not reach the database; per expiry: queries that one expiry \
                    of the row caused; waited: share of the reads that waited for another client's \
                    query, under its lock; times are of whole reads, p99 hit and p99 query of \
                    their calls";

/// One line per target and load with reads through a cache.
pub(crate) fn section(view: &View) -> Section {
    let numbers =
        ["hits", "queries saved", "per expiry", "waited", "p50", "p99", "longest", "p99 hit"];
    let numbers = numbers.into_iter().chain(["p99 query"]).map(Column::number);
    let columns = ["profile", "target", "load"].map(Column::words).into_iter();
    let columns = columns.chain(numbers).collect();
    let through = view.cells.iter().filter(|row| row.metrics.contains_key("queries_saved_share"));
    let blocks = explained(columns, through.map(|row| cells(view, row)), NOTE);
    Section { id: "through-cache", title: "Reads through a cache", blocks }
}

fn cells(view: &View, row: &Row) -> Vec<Cell> {
    let share = |name: &str| Cell::value(row.metrics.get(name), |v| show::share_of_all(v.center));
    let time_of = |row: Option<&Row>, percentile: &str| {
        let name = format!("{}_ns_{percentile}", row.map_or("", |row| row.load.times()));
        Cell::value(row.and_then(|row| row.metrics.get(&name)), show::time)
    };
    let of_call = |call: &str| {
        let name = format!("{}.{call}", row.operation);
        let found = view.cells.iter().find(|r| {
            r.operation == name
                && (&r.target, &r.workload, &r.load) == (&row.target, &row.workload, &row.load)
        });
        time_of(found, "p99")
    };
    let per_expiry = row.metrics.get("queries_per_expiry");
    vec![
        row.workload.as_str().into(),
        Cell::target(&row.target),
        row.load.to_string().into(),
        share("hit_ratio"),
        share("queries_saved_share"),
        Cell::value(per_expiry, |v| format!("{:.2}", v.center)),
        share("lock_wait_share"),
        time_of(Some(row), "p50"),
        time_of(Some(row), "p99"),
        time_of(Some(row), "max"),
        of_call("get"),
        of_call("query"),
    ]
}

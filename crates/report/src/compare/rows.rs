//! Result rows in both runs. Rows of pages are compared by service time.

use super::common::{Common, Compared, Group, Measured, RATE, TIME, paired};
use crate::standings::{is_part, standings};
use crate::view::{Row, Value, View};

/// All rows of the same target, profile, operation and load.
pub(super) fn common(a: &View, b: &View) -> Common {
    let (pairs, alone) = paired(&ordered(a), &ordered(b), same);
    let next_to =
        |x: &(&Row, &Row), y: &(&Row, &Row)| x.0.workload == y.0.workload && x.0.load == y.0.load;
    Common {
        names: ["row", "rows"],
        header: &["operation", "target"],
        groups: pairs.chunk_by(next_to).map(group).collect(),
        notes: Vec::new(),
        alone,
    }
}

/// Rows in display order.
fn ordered(view: &View) -> Vec<&Row> {
    let tables = standings(view);
    let groups = tables.iter().flat_map(|t| &t.groups);
    groups.flat_map(|g| &g.standings).map(|s| s.row).collect()
}

fn same(a: &Row, b: &Row) -> bool {
    a.target == b.target
        && a.workload == b.workload
        && a.operation == b.operation
        && a.load == b.load
}

fn group(pairs: &[(&Row, &Row)]) -> Group {
    let (first, _) = pairs[0];
    let title = format!("{}, {}", first.workload, first.load);
    let lines = pairs.iter().flat_map(|(a, b)| [Some(compared(a, b)), p99(a, b)]);
    Group { title, lines: lines.flatten().collect() }
}

/// The 99th percentile of a whole operation; `None` for a part, or if a row lacks it.
fn p99(a: &Row, b: &Row) -> Option<Compared> {
    let metric = format!("{}_ns_p99", a.load.times());
    let [one, two] = [a, b].map(|row| row.metrics.get(&metric).copied());
    let measured = |value: Value| Measured { value: Some(value), at_least: value.at_least };
    (!is_part(&a.operation)).then_some(Compared {
        names: vec![format!("{} p99", a.operation), a.target.clone()],
        kind: &TIME,
        a: measured(one?),
        b: measured(two?),
        by_wall: None,
        repeated: a.blocks.min(b.blocks),
    })
}

fn compared(a: &Row, b: &Row) -> Compared {
    let measured = |row: &Row| Measured::of(row.metrics.get(&a.compared_by).copied());
    let is_rate = a.compared_by == "rate_per_s";
    let wall = |row: &Row| row.metrics.get("wall_rate_per_s").copied().filter(|_| is_rate);
    Compared {
        by_wall: wall(a).zip(wall(b)).map(<[_; 2]>::from),
        names: vec![a.operation.clone(), a.target.clone()],
        kind: if is_rate { &RATE } else { &TIME },
        a: measured(a),
        b: measured(b),
        repeated: a.blocks.min(b.blocks),
    }
}

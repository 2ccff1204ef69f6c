//! How costs grow with the size of the data set: a table for each profile with sizes and load.

use super::table::{Line, Table, named};
use crate::sheet::{Block, Section};
use crate::show;
use crate::view::{GrowthView, Value, View};
use stats::units::BOUNDED;

/// Column names of [`cells`].
const HEADER: [&str; 5] = ["operation", "target", "mean service time", "slope [95 %]", "the cost"];

/// What a slope is.
const NOTE: &str = "slope: the exponent by which the mean service time grows with the \
                               size: 0 is a cost that does not depend on it, 1 one in proportion \
                               to it";

/// All tables.
pub(crate) fn section(view: &View) -> Section {
    let mut blocks = Vec::new();
    for curves in tables(view) {
        blocks.push(Block::Note(title(&curves)));
        blocks.push(Block::Table(vec![table(&curves, false), table(&curves, true)]));
    }
    if !blocks.is_empty() {
        blocks.push(Block::Note(NOTE.into()));
    }
    Section { title: "Growth of the cost", blocks }
}

/// In full, or with the operation as a line of its own and of the costs the first and the last.
fn table(curves: &[&GrowthView], narrow: bool) -> Table {
    let mut lines = Vec::new();
    for (i, curve) in curves.iter().enumerate() {
        let mut cells = cells(curve);
        if narrow {
            let operation = cells.remove(0);
            if i == 0 || curves[i - 1].operation != operation {
                lines.push(Line::Heading(operation));
            }
            cells[0].insert_str(0, "  ");
            cells[1] = ends(curve);
        }
        lines.push(Line::Cells(cells, false));
    }
    let mut header = HEADER.to_vec();
    if narrow {
        header.remove(0);
        header[0] = "  target";
    }
    Table { header: named(header), right: Vec::new(), gap: if narrow { 1 } else { 2 }, lines }
}

/// The curves of each profile and load, in the view's order.
fn tables(view: &View) -> Vec<Vec<&GrowthView>> {
    let mut tables: Vec<Vec<&GrowthView>> = Vec::new();
    for curve in &view.growth {
        let same = |t: &&mut Vec<&GrowthView>| {
            t.first().is_some_and(|f| (&f.workload, &f.load) == (&curve.workload, &curve.load))
        };
        match tables.iter_mut().find(same) {
            Some(table) => table.push(curve),
            None => tables.push(vec![curve]),
        }
    }
    tables
}

/// Profile, load and sizes: `by-records, 4 clients: 2000, 5000 and 20000 records, 75 of a tag`.
fn title(curves: &[&GrowthView]) -> String {
    // A target that failed at a size has fewer points than others.
    let Some(most) = curves.iter().max_by_key(|curve| curve.points.len()) else {
        return String::new();
    };
    let distinct = |each: Vec<String>| {
        let mut each = each;
        each.dedup();
        show::listed(&each)
    };
    let records = distinct(most.points.iter().map(|p| p.records.to_string()).collect());
    let of_tag = distinct(most.points.iter().map(|p| count(p.records_of_tag)).collect());
    let sizes = match most.grows.as_str() {
        "records" => format!("{records} records, {of_tag} of a tag"),
        _ => format!("{of_tag} records of a tag among {records}"),
    };
    format!("{}, {}: {sizes}", most.workload, most.load)
}

/// A mean number, such as 7.5 or 750.
fn count(n: f64) -> String {
    if n < 9.95 { format!("{n:.1}") } else { format!("{n:.0}") }
}

/// A curve in the order of [`HEADER`].
fn cells(curve: &GrowthView) -> Vec<String> {
    let costs: Vec<String> = curve.points.iter().map(|p| show::ns(p.cost.center)).collect();
    vec![
        curve.operation.clone(),
        curve.target.clone(),
        costs.join(" → "),
        curve.slope.as_ref().map_or_else(|| "–".into(), slope),
        curve.verdict.to_string(),
    ]
}

/// First and last cost alone.
fn ends(curve: &GrowthView) -> String {
    match &curve.points[..] {
        [first, .., last] => {
            format!("{} → {}", show::ns(first.cost.center), show::ns(last.cost.center))
        }
        _ => cells(curve).swap_remove(2),
    }
}

/// `0.98 [0.95, 1.01]`; without an interval, the slope alone. Ends beyond ±100 are not told.
fn slope(value: &Value) -> String {
    let number = |n: f64| match n.abs() {
        size if size > BOUNDED && n > 0.0 => format!(">{BOUNDED}"),
        size if size > BOUNDED => format!("<-{BOUNDED}"),
        // Three digits are enough of a slope that says nothing.
        size if size >= 10.0 => format!("{n:.0}"),
        // A slope that rounds to 0 has no sign.
        _ => format!("{:.2}", (n * 100.0).round() / 100.0 + 0.0),
    };
    match show::bounds(value) {
        None => number(value.center),
        Some((lo, hi)) => format!("{} [{}, {}]", number(value.center), number(lo), number(hi)),
    }
}

//! Growth of costs with the size of the data set: a table for each profile with sizes and each
//! load.

use crate::section::{Block, Section};
use crate::show;
use crate::table::{Cell, Column, Line, Table};
use crate::view::{GrowthView, Value, View};
use stats::units::BOUNDED;

/// Column names of [`cells`].
const HEADER: [&str; 5] = ["operation", "target", "mean service time", "slope", "the cost"];

/// Explanation of a slope.
const NOTE: &str = "slope: the exponent by which the mean service time grows with the size: \
                    at 0 the cost does not depend on the size, at 1 it is proportional to it";

/// All tables.
pub(crate) fn section(view: &View) -> Section {
    let mut blocks = Vec::new();
    for curves in tables(view) {
        blocks.push(Block::note(title(&curves)));
        blocks.push(Block::forms(vec![table(&curves, cells), table(&curves, ends)]));
    }
    if !blocks.is_empty() {
        blocks.push(Block::note(NOTE));
    }
    Section { id: "growth", title: "Growth of the cost", blocks }
}

/// A table with a line per curve.
fn table(curves: &[&GrowthView], cells: fn(&GrowthView) -> Vec<Cell>) -> Table {
    let lines = curves.iter().map(|curve| Line::plain(cells(curve))).collect();
    Table::new(HEADER.map(Column::words).into(), lines).grouped()
}

/// The curves by profile and load, in the view's order.
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

/// Title with profile, load and sizes: `by-records, 4 clients: 2000, 5000 and 20000 records, 75 of
/// a tag`.
fn title(curves: &[&GrowthView]) -> String {
    // A target that failed at some size has fewer points.
    let Some(most) = curves.iter().max_by_key(|curve| curve.points.len()) else {
        return String::new();
    };
    let distinct = |each: Vec<String>| {
        let mut each = each;
        each.dedup();
        show::listed(&each)
    };
    let records = distinct(most.points.iter().map(|p| p.records.to_string()).collect());
    let of_tag: Vec<f64> = most.points.iter().filter_map(|p| p.records_of_tag).collect();
    if of_tag.is_empty() {
        return format!("{}, {}: {records} keys", most.workload, most.load);
    }
    let of_tag = distinct(of_tag.into_iter().map(count).collect());
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

/// Cells of a curve in the order of [`HEADER`].
fn cells(curve: &GrowthView) -> Vec<Cell> {
    let costs: Vec<String> = curve.points.iter().map(|p| show::ns(p.cost.center)).collect();
    vec![
        curve.operation.clone().into(),
        Cell::target(&curve.target),
        costs.join(" → ").into(),
        Cell::value(curve.slope.as_ref(), slope),
        curve.verdict.to_string().into(),
    ]
}

/// The same with only the first and the last cost.
fn ends(curve: &GrowthView) -> Vec<Cell> {
    let mut cells = cells(curve);
    if let [first, .., last] = &curve.points[..] {
        let ends = [first, last].map(|point| show::ns(point.cost.center));
        cells[2] = ends.join(" → ").into();
    }
    cells
}

/// `0.98 [0.95, 1.01]`, or the slope alone without an interval. Bounds beyond ±100 print as such.
fn slope(value: &Value) -> String {
    let number = |n: f64| match n.abs() {
        size if size > BOUNDED && n > 0.0 => format!(">{BOUNDED}"),
        size if size > BOUNDED => format!("<-{BOUNDED}"),
        // Decimals of a slope of 10 or more are noise.
        size if size >= 10.0 => format!("{n:.0}"),
        // Adding 0.0 removes the sign of -0.0.
        _ => format!("{:.2}", (n * 100.0).round() / 100.0 + 0.0),
    };
    match show::bounds(value) {
        None => number(value.center),
        Some((lo, hi)) => format!("{} [{}, {}]", number(value.center), number(lo), number(hi)),
    }
}

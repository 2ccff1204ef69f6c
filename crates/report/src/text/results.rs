//! The tables of results, in the widest layout that fits the terminal.

use super::table::{Line, Paint, Table, named, paragraph};
use crate::show;
use crate::standings::{Group, Standing, Standings, doubts, marks, standings};
use crate::view::{Value, View};

/// How much a table shows beside each other.
#[derive(Clone, Copy, Debug)]
struct Layout {
    /// Operation in a column, intervals by both ends, CPU in two columns; otherwise the operation
    /// as a line of its own, intervals by their half-width, CPU in one column.
    full: bool,
    gap: usize,
    notes: bool,
}

/// From the widest to the narrowest.
const LAYOUTS: [Layout; 4] = [
    Layout { full: true, gap: 2, notes: true },
    Layout { full: false, gap: 2, notes: true },
    Layout { full: false, gap: 1, notes: true },
    Layout { full: false, gap: 1, notes: false },
];

/// All tables, in one layout for all of them.
pub(crate) fn render(view: &View, columns: usize, paint: Paint) -> String {
    let all = standings(view);
    let fits = |layout: &&Layout| all.iter().all(|s| table(s, **layout).width() <= columns);
    let layout = LAYOUTS.iter().find(fits).unwrap_or(&LAYOUTS[LAYOUTS.len() - 1]);
    let mut parts: Vec<String> =
        all.iter().map(|s| one(view, s, *layout, columns, paint)).collect();
    if let Some(last) = parts.last_mut() {
        let words = words(view, all.iter().any(Standings::compares));
        *last += &paragraph("", 0, &words, columns);
        for doubt in doubts(&all) {
            *last += &paragraph("", 0, &doubt, columns);
        }
    }
    parts.join("\n")
}

/// What the columns mean.
fn words(view: &View, compares: bool) -> String {
    let is_open = view.cells.iter().any(|r| r.load.times() == "response");
    let times = if is_open {
        "response times, from the moment at which a request was due"
    } else {
        "service times"
    };
    let cpu = "CPU is time per operation of server and generator";
    if !compares {
        return format!("times are {times}; {cpu}");
    }
    let mut words = format!(
        "* best of its operation; times are {times}; {cpu}; the last words compare with the best"
    );
    if view.cells.iter().any(|r| r.compared_by == "response_ns_mean") {
        words += ", by mean response time, since the plan sets the rate";
    } else if view.cells.iter().any(|r| r.compared_by != "rate_per_s") {
        words += ", by mean service time where think time or the mix sets the rate (pages, parts \
                  of a phase)";
    }
    words
}

fn one(
    view: &View,
    standings: &Standings<'_>,
    layout: Layout,
    columns: usize,
    paint: Paint,
) -> String {
    let mut title = format!("{}, {}", standings.workload, standings.load);
    if !standings.footnotes.is_empty() {
        title += &format!("  [notes {}]", marks(standings.footnotes.iter()));
    }
    let mut text = paint.title(&title, columns);
    text += &about(view, standings.workload, columns);
    text += &table(standings, layout).fit(paint, columns);
    let marked = standings.marked();
    if !layout.notes && !marked.is_empty() {
        text += &paragraph("  notes on ", 4, &marked, columns);
    }
    text
}

/// What data a profile has, where that is told.
fn about(view: &View, profile: &str, columns: usize) -> String {
    view.asked.data.get(profile).map_or_else(String::new, |data| paragraph("", 0, data, columns))
}

fn table(standings: &Standings<'_>, layout: Layout) -> Table {
    let (header, right): (Vec<_>, &'static [usize]) = if layout.full {
        (
            vec![
                "operation",
                "target",
                standings.rate_heading(),
                "p50",
                "p99",
                "p99.9",
                "CPU server",
                "generator",
                "against the best",
                "notes",
            ],
            &[3, 4, 5, 6, 7],
        )
    } else {
        (
            vec!["  target", "rate", "p50", "p99", "p99.9", "CPU s+g µs", "against best", "notes"],
            &[2, 3, 4, 5],
        )
    };
    let mut lines = Vec::new();
    for group in &standings.groups {
        if !layout.full {
            lines.push(Line::Heading(group.operation.into()));
        }
        lines.extend(group_lines(group, layout, &standings.footnotes));
    }
    let mut table = Table { header: named(header), right: right.to_vec(), gap: layout.gap, lines };
    let last = table.header.len() - 1;
    if !layout.notes || standings_without_marks(standings) {
        table.header[last] = "".into();
    }
    if !standings.compares() {
        table.header[last - 1] = "".into();
    }
    table
}

fn standings_without_marks(standings: &Standings<'_>) -> bool {
    let rows = standings.groups.iter().flat_map(|g| &g.standings);
    rows.into_iter().all(|s| s.marks(&standings.footnotes).is_empty())
}

fn group_lines<'a>(
    group: &'a Group<'_>,
    layout: Layout,
    shared: &'a [usize],
) -> impl Iterator<Item = Line> + 'a {
    group.standings.iter().enumerate().map(move |(i, s)| {
        let mark = if s.is_best() { "*" } else { " " };
        let notes = if layout.notes { s.marks(shared) } else { String::new() };
        let target = format!("{mark} {}", s.row.target);
        let times = ["p50", "p99", "p999"].map(|p| s.time(p));
        let mut cells = Vec::new();
        if layout.full {
            cells.push(if i == 0 { group.operation.to_string() } else { String::new() });
            cells.extend([target, s.metric("rate_per_s", show::rate_value)]);
            cells.extend(times);
            cells.extend([s.ns("server_cpu_ns_per_op"), s.ns("generator_cpu_ns_per_op")]);
        } else {
            cells.extend([target, s.metric("rate_per_s", show::rate_value_short)]);
            cells.extend(times);
            cells.push(cpu(s));
        }
        cells.extend([group.verdict(s), notes]);
        Line::Cells(cells, s.is_best())
    })
}

/// CPU microseconds an operation of server and generator: `3.10+4.21`, `–+4.21`, `–`.
fn cpu(standing: &Standing<'_>) -> String {
    let microseconds = |v: &Value| {
        let us = v.center / 1e3;
        let decimals = if us >= 100.0 {
            0
        } else if us >= 10.0 {
            1
        } else {
            2
        };
        format!("{us:.decimals$}")
    };
    let server = standing.metric("server_cpu_ns_per_op", microseconds);
    let generator = standing.metric("generator_cpu_ns_per_op", microseconds);
    if server == "–" && generator == "–" { server } else { format!("{server}+{generator}") }
}

//! The tables of results: one per profile and load, with all operations and targets.

use super::planned::Planned;
use crate::section::{Block, Section};
use crate::show;
use crate::standings::{Against, Group, Standing, Standings, doubts, standings};
use crate::table::{Cell, Column, Line, NONE, Table, Tone};
use crate::view::{Value, View};
use stats::{Verdict, format_bytes};

/// Column of the median time to open a connection, where each request has its own.
const CONNECT: &str = "connect p50";
/// Column of the part of the server's CPU time that a proxy before the servers used.
const PROXY: &str = "of it proxy";

/// All tables, with an explanation of their columns.
pub(crate) fn section(view: &View) -> Section {
    let all = standings(view);
    let mut blocks: Vec<Block> = all.iter().flat_map(|table| one(view, table)).collect();
    if !blocks.is_empty() {
        blocks.push(Block::note(words(view, all.iter().any(Standings::compares))));
    }
    blocks.extend(doubts(&all).into_iter().map(Block::note));
    Section { id: "results", title: "Results", blocks }
}

/// Explanation of the columns.
fn words(view: &View, compares: bool) -> String {
    let reconnects = view.cells.iter().any(|r| r.load.reconnects);
    let times = Planned::of(view.cells.iter().map(|row| &row.load)).times();
    let connect = "; where each request has its own connection, response times, which include \
                   opening it (connect: TCP, TLS and login)";
    let times = format!("{times}{}", if reconnects { connect } else { "" });
    let cpu = "CPU is time per operation of server and generator";
    if !compares {
        return format!("times are {times}; {cpu}");
    }
    let mut words = format!("times are {times}; {cpu}; verdicts compare with the best");
    if view.cells.iter().any(|r| r.compared_by == "response_ns_mean") {
        words += ", where the plan sets the rate by mean response time: × is then that of the \
                  best divided by the target's own, which no column shows";
    } else if view.cells.iter().any(|r| r.compared_by != "rate_per_s") {
        words += ", by mean service time where think time or the mix sets the rate (pages, parts \
                  of a phase)";
    }
    words
}

/// A table with its title and the data of its profile.
fn one(view: &View, standings: &Standings<'_>) -> Vec<Block> {
    let text = format!("{}, {}", standings.workload, standings.load);
    let title = Block::Title { text, notes: standings.footnotes.clone() };
    let data = view.asked.data.get(standings.workload).map(Block::note);
    let forms = [Form::Full, Form::Short].map(|form| table(standings, form));
    [Some(title), data, Some(Block::forms(forms.into()))].into_iter().flatten().collect()
}

/// Level of detail of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// All columns, intervals with both bounds.
    Full,
    /// Intervals as half-widths, CPU time in one column.
    Short,
}

fn table(standings: &Standings<'_>, form: Form) -> Table {
    let rate = Column { has_meter: true, ..Column::number("rate") };
    let times = ["p50", "p99", "p99.9"].map(Column::number);
    let mut columns: Vec<Column> = ["operation", "target"].map(Column::words).into();
    match form {
        Form::Full => {
            columns.push(rate.about(standings.ends_name()));
            columns.push(Column::number(CONNECT));
            columns.extend(times);
            columns.extend(["CPU server", PROXY, "generator", "network"].map(Column::number));
            columns.extend([Column::words("against the best"), Column::number("blocks")]);
        }
        Form::Short => {
            columns.push(rate);
            columns.push(Column::number(CONNECT));
            columns.extend(times);
            columns.extend([Column::number("CPU s+g µs"), Column::words("against best")]);
        }
    }
    let line = |(group, standing): (&Group<'_>, &Standing<'_>)| Line {
        cells: cells(group, standing, &standings.footnotes, form),
        is_strong: standing.is_best(),
    };
    let all = standings.groups.iter().flat_map(|g| g.standings.iter().map(move |s| (g, s)));
    let mut table = Table::new(columns, all.map(line).collect()).grouped();
    for title in ["network", CONNECT, PROXY] {
        if let Some(at) = table.columns.iter().position(|column| column.title == title) {
            table.remove_empty(at, NONE);
        }
    }
    table
}

fn cells(group: &Group<'_>, standing: &Standing<'_>, shared: &[usize], form: Form) -> Vec<Cell> {
    let own = standing.row.footnotes.iter().filter(|note| !shared.contains(note));
    let target = Cell { notes: own.copied().collect(), ..Cell::target(&standing.row.target) };
    let times = ["p50", "p99", "p999"].map(|percentile| standing.time(percentile));
    let connect = standing.cell("connect_ns_p50", show::time);
    let verdict = Cell::from(group.verdict(standing)).toned(tone(group, standing));
    let mut cells = vec![group.operation.into(), target];
    match form {
        Form::Full => {
            cells.push(standing.cell("rate_per_s", show::rate_value));
            cells.push(connect);
            cells.extend(times);
            let cpu = ["server_cpu_ns_per_op", "proxy_cpu_ns_per_op", "generator_cpu_ns_per_op"];
            cells.extend(cpu.map(|name| standing.cell(name, show::time)));
            let bytes = |value: &Value| format_bytes(value.center as u64);
            cells.push(standing.cell("network_bytes_per_op", bytes));
            let blocks = standing.row.blocks;
            cells.extend([verdict, Cell::number(blocks.to_string(), blocks.into())]);
        }
        Form::Short => {
            cells.push(standing.cell("rate_per_s", show::rate_value_short));
            cells.push(connect);
            cells.extend(times);
            cells.extend([cpu(standing), verdict]);
        }
    }
    cells
}

fn tone(group: &Group<'_>, standing: &Standing<'_>) -> Tone {
    match standing.against {
        Against::Best if group.is_won() => Tone::Good,
        Against::Other { verdict: Verdict::Undecided, .. } => Tone::Doubt,
        _ => Tone::Plain,
    }
}

/// CPU time of server and generator per operation, microseconds: `3.10+4.21`, `–+4.21`, `–`.
fn cpu(standing: &Standing<'_>) -> Cell {
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
    let [server, generator] = ["server_cpu_ns_per_op", "generator_cpu_ns_per_op"]
        .map(|name| standing.cell(name, microseconds).text);
    if server == NONE && generator == NONE {
        return server.into();
    }
    format!("{server}+{generator}").into()
}

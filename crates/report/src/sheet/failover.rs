//! What clients noticed of faults: a table with a line for each cell.

use crate::fault_facts::UNTIL_END;
use crate::section::{Block, Section, explained};
use crate::show;
use crate::table::{Cell, Column, Line, NONE, Table};
use crate::view::{FailoverView, SpreadView, View};

const NOTE: &str = "times: median, then the worst in brackets, from the fault; `no reads` and `no \
                    writes`: the longest time without an answer; rate back: until the rate was \
                    within 5 % of that before, or within chance of it; p99 back: until the 99th \
                    percentile was within the limit and stayed there, also during the resync; \
                    busiest server: of one CPU, \
                    in its busiest second after the fault (the usual limit is 80 %); two \
                    primaries: from the promotion until the old primary became a replica; lost: \
                    acknowledged writes that were gone or replaced by an older value, of those \
                    checked (read back, with no later write that hides a loss), over all faults; \
                    unknown: writes without an answer";

const SHORT_NOTE: &str = "times: median, then the worst in brackets; no writes: the longest time \
                          without an answer; p99 back: until the 99th percentile was within the \
                          limit and stayed there; lost: acknowledged writes, of those checked";

/// Titles of the columns of numbers.
const NUMBERS: [&str; 11] = [
    "planned",
    "faults",
    "within limit again",
    "no reads",
    "no writes",
    "rate back",
    "p99 back",
    "busiest server",
    "two primaries",
    "lost",
    "unknown",
];

pub(crate) fn section(view: &View) -> Section {
    let words = ["profile", "target", "fault"].map(Column::words);
    let columns = words.into_iter().chain(NUMBERS.map(Column::number)).collect();
    let lines = view.happened.failovers.iter().map(|of| cells(of).into());
    let mut blocks: Vec<Block> = view
        .happened
        .survivals
        .iter()
        .filter(|_| view.happened.survivals.len() > 1)
        .map(|survival| Block::item(survival.sentence.clone()))
        .collect();
    blocks.extend(items(view));
    blocks.extend(explained(columns, lines, NOTE));
    Section { id: "failover", title: "Faults", blocks }
}

/// What matters most, for the first screen.
pub(super) fn overview(view: &View) -> Vec<Block> {
    let words = ["profile", "target"].map(Column::words);
    let numbers = ["rate", "faults", "no writes", "p99 back", "lost"].map(Column::number);
    let line = |of: &FailoverView| {
        let [profile, target, _, planned, faults, _, _, writes, _, back, _, _, lost, _] = cells(of);
        [profile, target, planned, faults, writes, back, lost]
    };
    let lines = view.happened.failovers.iter().map(|of| Line::plain(line(of)));
    let lines: Vec<Line> = lines.collect();
    if lines.is_empty() {
        return Vec::new();
    }
    let columns = words.into_iter().chain(numbers).collect();
    let table = [Block::table(Table::new(columns, lines)), Block::note(SHORT_NOTE)];
    items(view).chain(table).collect()
}

/// What went wrong in the deployments themselves.
fn items(view: &View) -> impl Iterator<Item = Block> {
    let all = view.happened.failovers.iter();
    let said = all.flat_map(|of| [not_promoted(of), above_before(of), failed(of)]);
    said.flatten().map(Block::item)
}

/// That a rate exceeded the limit without a fault.
fn above_before(of: &FailoverView) -> Option<String> {
    let number = of.trouble.above_limit_before.filter(|number| *number > 0)?;
    let FailoverView { target, workload, faults, .. } = of;
    Some(format!(
        "{target}, {workload}: p99 was above the limit before {number} of {faults} faults already \
         (too high a rate, or a disturbed machine), so these do not count as within the \
         limit again"
    ))
}

/// That trials failed with the fault.
fn failed(of: &FailoverView) -> Option<String> {
    let FailoverView { target, workload, faults, trouble, .. } = of;
    let number = trouble.failed;
    (number > 0).then(|| {
        format!(
            "{target}, {workload}: {number} of {faults} trials failed with the fault, so they do \
             not count as survived, and have no times here; see the failed trials"
        )
    })
}

/// That no server took over.
fn not_promoted(of: &FailoverView) -> Option<String> {
    let number = of.trouble.not_promoted.filter(|number| *number > 0)?;
    let FailoverView { target, workload, faults, .. } = of;
    Some(format!(
        "{target}, {workload}: no server was promoted after {number} of {faults} faults; the \
         servers did not agree on a new primary in time, or none was up to date"
    ))
}

/// What a time is called that outlasts the measurement.
const NEVER: &str = "not at all";

fn time(spread: Option<&SpreadView>, (zero, endless): (&str, &str)) -> Cell {
    let shown = |ns: f64| if ns > 0.0 { show::ns(ns) } else { zero.into() };
    spread_of(spread, shown, endless).into()
}

/// A time without answers.
fn silence(spread: Option<&SpreadView>) -> Cell {
    spread_of(spread, show::silence, NEVER).into()
}

fn cells(of: &FailoverView) -> [Cell; 14] {
    let planned = of.planned_per_s.as_ref().map_or_else(|| NONE.into(), show::rate_value);
    let survived = of.survived.map_or_else(|| NONE.into(), |n| format!("{n} of {}", of.faults));
    let lost = of.writes_lost.map_or_else(
        || NONE.into(),
        |(lost, read)| format!("{} of {}", show::commas(lost), show::commas(read)),
    );
    [
        of.workload.clone().into(),
        Cell::target(&of.target),
        fault(of).into(),
        planned.into(),
        of.faults.to_string().into(),
        survived.into(),
        silence(of.reads_unavailable_ns.as_ref()),
        silence(of.writes_unavailable_ns.as_ref()),
        time(of.rate_back_ns.as_ref(), ("at once", NEVER)),
        time(of.p99_back_ns.as_ref(), ("at once", NEVER)),
        spread_of(of.cpu_peak_share.as_ref(), show::percent, NEVER).into(),
        time(of.two_primaries_ns.as_ref(), ("none", UNTIL_END)),
        lost.into(),
        show::commas(of.writes_unknown).into(),
    ]
}

/// `kill`, or `kill, by command`.
fn fault(of: &FailoverView) -> String {
    let by_command = if of.by_command { ", by command" } else { "" };
    format!("{}{by_command}", of.fault)
}

/// `2.1 s (2.5 s)`; `endless` stands for what outlasts the measurement.
fn spread_of(spread: Option<&SpreadView>, show: impl Fn(f64) -> String, endless: &str) -> String {
    let Some(SpreadView { median, worst, all }) = spread else { return NONE.into() };
    let number = |value: Option<f64>| value.map_or_else(|| endless.into(), &show);
    match all.len() {
        0 => number(None),
        1 if worst.is_some() => number(*median),
        _ => format!("{} ({})", number(*median), number(*worst)),
    }
}

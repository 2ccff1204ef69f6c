//! Probes of a search, a line each.

use super::{PLANNED, line, number};
use crate::view::{ProbeView, Time, View};

/// Columns of every search; behind them is one for each limit.
const COLUMNS: [&str; 14] = [
    "run",
    "validity",
    "target",
    "number",
    "purpose",
    PLANNED,
    "length_s",
    "answered_per_s",
    "response_ns_p50",
    "response_ns_p99",
    "error_share",
    "taken_share",
    "verdict",
    "reason",
];

/// One line a probe, after a line of column names; columns behind the reason are named after the
/// limits and have the share of requests beyond them. A run that is no search gives the column
/// names alone.
pub fn render_probes(view: &View) -> String {
    let limits = view.search.iter().flat_map(|search| &search.limits);
    let mut header = COLUMNS.map(String::from).to_vec();
    header.extend(limits.map(|limit| format!("beyond {limit}")));
    let mut text = line(&header);
    if let Some(search) = &view.search {
        for probe in &search.probes {
            text += &line(&row(view, probe, search.limits.len()));
        }
    }
    text
}

fn row(view: &View, probe: &ProbeView, limits: usize) -> Vec<String> {
    let ns = |time: Option<Time>| match time {
        Some(Time::Of(ns)) => ns.to_string(),
        Some(Time::Bound { at_least }) => format!(">={at_least}"),
        None => String::new(),
    };
    let mut fields = vec![
        view.run.clone(),
        view.validity.heading().into(),
        view.setup.targets.first().map(|target| target.name.clone()).unwrap_or_default(),
        probe.number.to_string(),
        probe.purpose.clone(),
        probe.rate_per_s.map(|rate| rate.to_string()).unwrap_or_default(),
        number(Some(probe.length_s)),
        number(Some(probe.answered_per_s)),
        ns(probe.response_ns_p50),
        ns(probe.response_ns_p99),
        number(probe.error_share),
        number(Some(probe.taken_share)),
        probe.verdict.clone(),
        probe.reason.clone().unwrap_or_default(),
    ];
    fields.extend((0..limits).map(|limit| number(probe.over_shares.get(limit).copied())));
    fields
}

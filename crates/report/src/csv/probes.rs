//! Probes of a search, a line each.

use super::{PLANNED, line, number};
use crate::view::{ProbeView, SearchView, Time, View};

/// Columns of every search; one column per limit follows.
const COLUMNS: [&str; 15] = [
    "run",
    "validity",
    "target",
    "block",
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

/// A header line, then one line per probe. The columns after the reason are named after the limits
/// and contain the share of requests beyond each. A run without a search has only the header line.
pub fn render_probes(view: &View) -> String {
    // All searches of a run have the same limits.
    let limits = view.searches.first().map_or(&[][..], |search| &search.limits);
    let mut header = COLUMNS.map(String::from).to_vec();
    header.extend(limits.iter().map(|limit| format!("beyond {limit}")));
    let mut text = line(&header);
    for search in &view.searches {
        for probe in &search.probes {
            let beyond = |limit: &String| probe.beyond.iter().find(|b| b.limit == *limit);
            let shares = limits.iter().map(|limit| number(beyond(limit).map(|b| b.share)));
            text += &line(&[row(view, search, probe), shares.collect()].concat());
        }
    }
    text
}

fn row(view: &View, search: &SearchView, probe: &ProbeView) -> Vec<String> {
    let ns = |time: Option<Time>| match time {
        Some(Time::Of(ns)) => ns.to_string(),
        Some(Time::Bound { at_least }) => format!(">={at_least}"),
        None => String::new(),
    };
    let reason = probe.failure.clone().or_else(|| Some(probe.reason?.to_string()));
    vec![
        view.run.clone(),
        view.validity.heading().into(),
        search.target.clone(),
        probe.block.to_string(),
        probe.number.to_string(),
        probe.purpose.to_string(),
        probe.rate_per_s.map(|rate| rate.to_string()).unwrap_or_default(),
        number(Some(probe.length_s)),
        number(Some(probe.answered_per_s)),
        ns(probe.response_ns_p50),
        ns(probe.response_ns_p99),
        number(probe.error_share),
        number(Some(probe.taken_share)),
        probe.verdict.map_or_else(String::new, |verdict| verdict.to_string()),
        reason.unwrap_or_default(),
    ]
}

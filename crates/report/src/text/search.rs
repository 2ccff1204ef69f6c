//! What a search found, in one sentence, and every probe in a line.

use super::section;
use super::table::{Line, Paint, Table, paragraph};
use crate::search::{FELL_BEHIND, commas, grouped};
use crate::show;
use crate::view::{ProbeView, SearchView, View};

/// Columns of the probes.
pub(crate) const HEADER: [&str; 9] =
    ["", "purpose", "rate/s", "answered", "p50", "p99", "errors", "beyond", "verdict"];

/// Shares of requests below this are told as less.
const BEYOND_MIN: f64 = 1e-4;

/// The result in a sentence, with the peak beside it.
pub(crate) fn result(view: &View, columns: usize, paint: Paint) -> String {
    let Some(search) = &view.search else { return String::new() };
    paint.title(&search.sentence, columns)
        + &peak(search).map_or_else(String::new, |peak| paragraph("", 0, &peak, columns))
}

/// `peak without regard for limits: 160,000/s`.
pub(crate) fn peak(search: &SearchView) -> Option<String> {
    let peak = grouped(search.peak_per_s?);
    Some(format!("peak without regard for limits: {peak}/s"))
}

/// Why the run may not be used, but for what the sentence says already.
pub(crate) fn other_reasons(view: &View) -> impl Iterator<Item = &String> {
    let said = view.search.as_ref().map(|search| &search.sentence);
    view.reasons.iter().filter(move |reason| Some(*reason) != said)
}

/// A line for each probe, in their order; rests only where the store had not come to rest.
pub(crate) fn probes(view: &View, columns: usize, paint: Paint) -> String {
    let Some(search) = &view.search else { return String::new() };
    let line = |probe| {
        let mut cells = cells(probe);
        cells[0] = format!("  {}", cells[0]);
        Line::Cells(cells, probe.verdict == "holds" && probe.purpose == "confirm")
    };
    let table = Table {
        header: HEADER.to_vec(),
        right: &[0, 2, 3, 4, 5, 6, 7],
        gap: 2,
        lines: search.probes.iter().map(line).collect(),
    };
    if search.probes.is_empty() {
        return String::new();
    }
    section("Probes", paint, &table.fit(paint, columns))
}

/// The cells of a probe's line.
pub(crate) fn cells(probe: &ProbeView) -> Vec<String> {
    let none = || "–".to_string();
    let ns = |ns: Option<u64>| ns.map_or_else(none, |ns| show::ns(ns as f64));
    let over: Vec<String> = probe.over_shares.iter().map(|share| beyond(*share)).collect();
    let is_judged = probe.purpose != "peak" && !over.is_empty();
    vec![
        probe.number.to_string(),
        probe.purpose.clone(),
        probe.rate_per_s.map_or_else(none, commas),
        grouped(probe.answered_per_s),
        ns(probe.response_ns_p50),
        ns(probe.response_ns_p99),
        probe.error_share.map_or_else(none, show::percent),
        if is_judged { over.join(", ") } else { none() },
        verdict(probe),
    ]
}

/// A share of requests; those of which none would be seen in ten thousand are not told apart.
fn beyond(share: f64) -> String {
    if share > 0.0 && share < BEYOND_MIN { "<0.01 %".into() } else { show::percent(share) }
}

/// The verdict, or in as few words why it is one: the usual reasons fit a narrow terminal.
fn verdict(probe: &ProbeView) -> String {
    match (&*probe.verdict, probe.reason.as_deref()) {
        ("missed", Some(FELL_BEHIND)) => FELL_BEHIND.into(),
        // How many were not, and why, is said once below.
        (verdict @ "not judged", _) | (verdict, None) => verdict.into(),
        ("", Some(why)) => why.into(),
        (verdict, Some(why)) => format!("{verdict} ({why})"),
    }
}

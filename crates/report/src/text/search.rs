//! What a search found, in one sentence, and every probe in a line.

use super::ramp::highest;
use super::table::{Line, Paint, Table, paragraph, section};
use crate::search::{FELL_BEHIND, STILL_SLOW};
use crate::show::{self, commas, grouped};
use crate::view::{ProbeView, SearchView, Time, View};

/// Columns of the probes.
pub(crate) const HEADER: [&str; 9] =
    ["", "purpose", "rate/s", "answered", "p50", "p99", "errors", "beyond", "verdict"];

/// What may stand as a verdict, and what it means.
const MEANINGS: [(&str, &str); 6] = [
    ("holds", "no more requests are beyond the limit than may be"),
    ("missed", "more requests are beyond it than may be"),
    (FELL_BEHIND, "missed, it answered fewer than were due"),
    ("undecided", "neither is certain"),
    ("broke", "it failed, see below, or answered nothing"),
    (STILL_SLOW, "a rest in which it did not answer yet as it does without load"),
];
/// How certain verdicts are.
const CERTAINTY: &str = "Verdicts are 95 % certain, and requests of one burst, which are slow \
                         together, count as few";
/// Why numbers of probes are missing.
const UNLISTED: &str = "Numbers that are not listed are rests after which the store answered as it \
                        does without load.";

/// Shares of requests below this are told as less.
const BEYOND_MIN: f64 = 1e-4;

/// Each result in a sentence, with the peaks and how targets compare below.
pub(crate) fn result(view: &View, columns: usize, paint: Paint) -> String {
    let sentences = view.searches.iter().map(|search| paint.title(&search.sentence, columns));
    let below = peaks(view).into_iter().chain(comparisons(view));
    sentences.chain(below.map(|words| paragraph("", 0, &words, columns))).collect()
}

/// `peak without regard for limits: 160,000/s`, of several searches each with its target.
pub(crate) fn peaks(view: &View) -> Option<String> {
    let told = |search: &SearchView| {
        let of =
            if view.searches.len() > 1 { format!("{} ", search.target) } else { String::new() };
        Some(format!("{of}{}/s", grouped(search.peak_per_s?)))
    };
    let told: Vec<String> = view.searches.iter().filter_map(told).collect();
    (!told.is_empty()).then(|| format!("peak without regard for limits: {}", told.join(", ")))
}

/// How the rates found compare, in words.
pub(crate) fn comparisons(view: &View) -> impl Iterator<Item = String> {
    let own = view.comparisons.iter().filter(|c| c.load.search().is_some());
    own.filter_map(highest)
}

/// Why the run may not be used, but for what the sentence says already.
pub(crate) fn other_reasons(view: &View) -> impl Iterator<Item = &String> {
    let is_said = |reason: &&String| view.searches.iter().any(|s| s.sentence == **reason);
    view.reasons.iter().filter(move |reason| !is_said(reason))
}

/// Of each search a line for each probe, in their order, and below them what the words mean.
pub(crate) fn probes(view: &View, columns: usize, paint: Paint) -> String {
    let probed = view.searches.iter().filter(|search| !search.probes.is_empty());
    let sections =
        probed.map(|search| section(&title(view, search), paint, &table(search, columns, paint)));
    sections.collect::<Vec<_>>().join("\n")
}

/// `Probes: 28, 14 of them rests`, of several searches with the target.
pub(crate) fn title(view: &View, search: &SearchView) -> String {
    let of = if view.searches.len() > 1 { format!(" of {}", search.target) } else { String::new() };
    let rests = match search.rests {
        0 => String::new(),
        rests => format!(", {rests} of them rests"),
    };
    format!("Probes{of}: {}{rests}", search.tried)
}

fn table(search: &SearchView, columns: usize, paint: Paint) -> String {
    let line = |(probe, mut cells): (&ProbeView, Vec<String>)| {
        cells[0] = format!("  {}", cells[0]);
        Line::Cells(cells, probe.verdict == "holds" && probe.purpose == "confirm")
    };
    let table = Table {
        header: HEADER.to_vec(),
        right: vec![0, 2, 3, 4, 5, 6, 7],
        gap: 2,
        lines: rows(search).into_iter().map(line).collect(),
    };
    let notes = notes(search).into_iter().map(|note| paragraph("  ", 2, &note, columns));
    table.fit(paint, columns) + &notes.collect::<String>()
}

/// Probes with their cells. Of rests that follow each other because the store was still slow only
/// the last is one, with the numbers of all.
pub(crate) fn rows(search: &SearchView) -> Vec<(&ProbeView, Vec<String>)> {
    let groups = search.probes.chunk_by(|a, b| is_slow_rest(a) && is_slow_rest(b));
    groups.filter_map(|group| row(group, search.by_block.len() > 1)).collect()
}

/// Of several blocks its number begins with that of the block.
fn row(group: &[ProbeView], of_blocks: bool) -> Option<(&ProbeView, Vec<String>)> {
    let (first, last) = (group.first()?, group.last()?);
    let mut cells = cells(last);
    let block = if of_blocks { format!("{}.", last.block + 1) } else { String::new() };
    cells[0] = format!("{block}{}", last.number);
    if group.len() > 1 {
        cells[0] = format!("{block}{}–{}", first.number, last.number);
        cells[HEADER.len() - 1] = format!("slow, {} times", group.len());
    }
    Some((last, cells))
}

/// A rest in which the store did not break, and that is listed since it had not come to rest.
fn is_slow_rest(probe: &ProbeView) -> bool {
    probe.purpose == "rest" && probe.verdict.is_empty()
}

/// What the verdicts that occur mean, and which numbers are not listed.
pub(crate) fn notes(search: &SearchView) -> Vec<String> {
    let occurs = |word: &str| search.probes.iter().any(|probe| verdict(probe) == word);
    let meanings = MEANINGS.iter().filter(|(word, _)| occurs(word));
    let meanings: Vec<String> = meanings.map(|(word, text)| format!("{word}: {text}")).collect();
    let mut notes = Vec::new();
    if !meanings.is_empty() {
        notes.push(format!("{CERTAINTY}: {}.", meanings.join("; ")));
    }
    let slow = search.probes.iter().filter(|probe| probe.purpose == "rest").count();
    if slow < search.rests as usize {
        notes.push(UNLISTED.into());
    }
    notes
}

/// The cells of a probe's line.
pub(crate) fn cells(probe: &ProbeView) -> Vec<String> {
    let none = || "–".to_string();
    let ns = |time: Option<Time>| time.map_or_else(none, |time| time.to_string());
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

/// The verdict, or in as few words why it is one: they fit a narrow terminal.
fn verdict(probe: &ProbeView) -> String {
    match (&*probe.verdict, probe.reason.as_deref()) {
        _ if is_slow_rest(probe) => STILL_SLOW.into(),
        ("missed", Some(FELL_BEHIND)) => FELL_BEHIND.into(),
        // For how many others may be to blame, and why some broke, is said once below.
        (verdict, _) => verdict.into(),
    }
}

//! Rules on the answer of a search.

use model::{Blame, Point};
use stats::search::{ProbeResult, Purpose};

use crate::findings::Findings;
use crate::limits::{BLAMED_MAX, CONTRADICTED_MAX, WIDTH_MAX};
use crate::search::{CellSearch, per_s};
use crate::view::{SearchOutcome, SearchView};

/// Search without a rate.
pub(super) fn answer(_: &CellSearch<'_>, view: &SearchView, findings: &mut Findings) {
    if view.answer.is_none() {
        findings.invalid.push(view.sentence.clone());
    }
}

/// Answer limited by the number of clients.
pub(super) fn busy_clients(_: &CellSearch<'_>, view: &SearchView, findings: &mut Findings) {
    if view.outcome == SearchOutcome::Clients {
        findings.invalid.push(view.sentence.clone());
    }
}

/// Broken probes. At rates up to the upper bound of the answer they count as failed trials; above
/// it they show where the store breaks.
pub(super) fn failed_probes(search: &CellSearch<'_>, view: &SearchView, findings: &mut Findings) {
    let (mut above, mut within) = (Vec::new(), Vec::new());
    for block in &search.blocks {
        let Some((_, hi)) = block.rate().and_then(|rate| rate.interval()) else { continue };
        for (seen, point) in block.pairs().filter(|(s, _)| s.broke && s.purpose != Purpose::Peak) {
            let is_above = seen.rate_per_s as f64 > hi.ceil();
            if is_above { &mut above } else { &mut within }.push((seen, point));
        }
    }
    let sentence = |broken: &[(&ProbeResult, &Point)], at: &str| {
        let (seen, point) = broken.iter().min_by_key(|(s, _)| s.rate_per_s)?;
        let why = point.failure.as_ref().map(ToString::to_string);
        Some(format!(
            "{}{} of {} probes failed at rates {at} the answer, the lowest at {}: {}",
            search.place(),
            broken.len(),
            view.tried,
            per_s(seen.rate_per_s as f64),
            why.unwrap_or_else(|| "nothing was answered".into())
        ))
    };
    findings.invalid.extend(sentence(&within, "no higher than"));
    findings.footnotes.extend(sentence(&above, "above"));
}

/// Probes that exceeded a limit because the generator was late.
pub(super) fn late_generator(search: &CellSearch<'_>, _: &SearchView, findings: &mut Findings) {
    let (late, missed) = blamed(search, Blame::Generator);
    if late as f64 > BLAMED_MAX * missed as f64 {
        findings.invalid.push(format!(
            "{}in {late} of {missed} failed probes the generator itself sent too many requests \
             late although a client was free: give it its own CPUs or more --threads, or measure \
             on a quieter machine",
            search.place()
        ));
    }
}

/// Probes that exceeded a limit possibly because of stolen CPU time.
pub(super) fn disturbed_probes(search: &CellSearch<'_>, _: &SearchView, findings: &mut Findings) {
    let (disturbed, missed) = blamed(search, Blame::Others);
    let text = format!(
        "{}in {disturbed} of {missed} failed probes other processes used the CPUs of generator \
         or server for a larger share of the time than requests may exceed the limit",
        search.place()
    );
    if disturbed as f64 > BLAMED_MAX * missed as f64 {
        let cure = "stop other processes on these CPUs, or measure on a quieter machine";
        let words = format!("{text}, so the store may sustain more: {cure}");
        findings.not_steady("CPU time stolen", words);
    } else if disturbed > 0 {
        findings.footnotes.push(text + "; these probes still count");
    }
}

/// Number of probes beyond a limit with this possible cause, and number of probes beyond a limit.
fn blamed(search: &CellSearch<'_>, who: Blame) -> (usize, usize) {
    let blamed = search.blamed();
    (blamed.iter().filter(|blame| **blame == Some(who)).count(), blamed.len())
}

/// Probes that contradict others.
pub(super) fn contradictions(search: &CellSearch<'_>, _: &SearchView, findings: &mut Findings) {
    let (against, probes) = search.contradictions();
    if against as f64 > CONTRADICTED_MAX * probes as f64 {
        let sentence = format!(
            "{}{against} of {probes} probes clearly failed at or below a rate that passed: store \
             or machine changed during the search, measure on a quieter machine or with a longer \
             --probe",
            search.place()
        );
        findings.not_steady("store or machine changed during the search", sentence);
    }
}

/// Interval too wide for an answer.
pub(super) fn wide_interval(search: &CellSearch<'_>, _: &SearchView, findings: &mut Findings) {
    let mut intervals = search.blocks.iter().filter_map(|block| block.rate()?.interval());
    if let Some((lo, hi)) = intervals.find(|(lo, hi)| *hi > lo * WIDTH_MAX) {
        let sentence = format!(
            "{}the interval spans {} to {}: probes disagree by more than half; measure on \
             a quieter machine, or with more --rounds and a longer --probe",
            search.place(),
            per_s(lo),
            per_s(hi)
        );
        findings.not_steady("probes of the search disagree", sentence);
    }
}

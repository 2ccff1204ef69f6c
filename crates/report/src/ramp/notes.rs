//! Footnotes about ramps. Failures and waits above the knee are expected in a ramp, so they do not
//! break a rule.

use model::Counts;
use stats::compare::FEWEST_BLOCKS;
use stats::knee::{ERROR_SHARE, Stage, Way};

use super::ladder::{Ramp, StageResult, planned};
use crate::blocks::Doubt;
use crate::footnotes;
use crate::notes::Notes;
use crate::recorded::Recorded;
use crate::show::{self, RANGE, classes, ends_name};
use crate::taken;
use crate::view::RampView;

/// Maximum share of the 99th percentile at the knee that is lag, without a footnote.
const LAG_SHARE_NOTE: f64 = 0.5;

/// Footnotes of all ramps.
pub(crate) fn note(ramps: &[(Ramp<'_>, RampView)], recorded: &Recorded, notes: &mut Notes) {
    for (ramp, _) in ramps {
        let place = format!("`{}`", ramp.cell.id);
        note_counts(ramp, &place, notes);
        note_knees(ramp, &place, notes);
        taken::note_ramp(ramp, &place, notes);
        note_way_back(ramp, &place, notes);
    }
    if !ramps.is_empty() {
        footnotes::pinning(&recorded.header, notes);
    }
    let mut blocks = ramps.iter().map(|(_, view)| view.blocks);
    if blocks.any(|blocks| blocks as usize >= FEWEST_BLOCKS && ends_name(blocks) == RANGE) {
        notes.add(Doubt::Range.to_string());
    }
}

/// Number of operations with an unexpected outcome.
fn note_counts(ramp: &Ramp<'_>, place: &str, notes: &mut Notes) {
    let points = || ramp.ladders.iter().flat_map(|ladder| &ladder.trial.points);
    let mut counts = Counts::default();
    for point in points() {
        point.whole().into_iter().for_each(|whole| counts.merge(&whole.counts));
        counts.merge(&point.warmup);
    }
    let mut note = |n: u64, what: &str| {
        if n > 0 {
            notes.add(format!("{place}: {n} of {} operations {what}", counts.total()));
        }
    };
    note(counts.miss, "found nothing: the server had evicted the key, or it had expired");
    note(counts.error, &format!("failed: {}", classes(&counts)));
    let unsent: u64 = points().map(|point| point.unsent).sum();
    if unsent > 0 {
        notes.add(format!(
            "{place}: {unsent} more operations were due and never sent: they waited for a client \
             until the timeout (--timeout); stages count them as failed"
        ));
    }
}

/// Lack of recovery: on the way down, stages at or below the knee failed.
fn note_way_back(ramp: &Ramp<'_>, place: &str, notes: &mut Notes) {
    let mut below: Vec<&Stage> = Vec::new();
    for ladder in ramp.whole() {
        let Some(held) = ladder.last_passing() else { continue };
        let low = |seen: &&StageResult<'_>| planned(seen.result) <= planned(held.result);
        let way = ladder.stages.iter().filter(|seen| seen.way == Way::Down);
        below.extend(way.filter(low).map(|seen| &seen.rule));
    }
    let missed: Vec<&Stage> = below.iter().copied().filter(|rule| !rule.holds()).collect();
    let failed = missed.iter().filter(|rule| rule.error_share >= ERROR_SHARE).count();
    if failed == 0 && missed.len() * 2 <= below.len() {
        return;
    }
    let failed =
        if failed > 0 { format!(", {failed} of them with failed requests") } else { String::new() };
    notes.add(format!(
        "{place}: on the way down {} of {} stages at or below the knee failed{failed}: the store \
         had not recovered from the overload",
        missed.len(),
        below.len()
    ));
}

/// Doubts about the knees of blocks.
fn note_knees(ramp: &Ramp<'_>, place: &str, notes: &mut Notes) {
    let blocks = ramp.whole().count();
    if ramp.whole().any(|ladder| ladder.knee.against > 0) && !ramp.is_contradicted() {
        notes.add(against_words(ramp));
    }
    let late = ramp.whole().filter(|ladder| ladder.last_passing().is_some_and(is_late)).count();
    if late * 2 > blocks {
        notes.add(format!(
            "{place}: at the knee more than {} of the 99th percentile is time before requests \
             were sent: they waited for a client, or the generator was late",
            show::percent(LAG_SHARE_NOTE)
        ));
    }
}

/// Number of stages that contradict the knees of their blocks.
pub(crate) fn against_words(ramp: &Ramp<'_>) -> String {
    let doubtful = ramp.whole().filter(|ladder| ladder.knee.against > 0).count();
    let stages: usize = ramp.whole().map(|ladder| ladder.knee.against).sum();
    let plural = if stages == 1 { "" } else { "s" };
    format!(
        "`{}`: {stages} stage{plural} in {doubtful} of {} blocks contradict the knee: failed \
         below it, or passed above it",
        ramp.cell.id,
        ramp.whole().count()
    )
}

fn is_late(seen: &StageResult<'_>) -> bool {
    let Some(lag) = seen.whole().map(|whole| &whole.lag) else { return false };
    let p99 = seen.quantile(0.99).unwrap_or(0.0);
    !lag.is_empty() && lag.quantile_ns(0.99) as f64 > LAG_SHARE_NOTE * p99
}

//! What is to be known of a ramp beside the rules: that requests fail or wait beyond the knee is
//! what a ramp is for.

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

/// Share of the 99th percentile at the knee that may be the requests' lag.
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

/// How many operations ended otherwise than they should.
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
    note(counts.miss, "found nothing: the server had removed the key, or its lifetime was over");
    note(counts.error, &format!("failed: {}", classes(&counts)));
    let unsent: u64 = points().map(|point| point.unsent).sum();
    if unsent > 0 {
        notes.add(format!(
            "{place}: {unsent} more operations were due and never sent: they waited for a client \
             until the time-out (--timeout) had passed; stages count them as failed"
        ));
    }
}

/// That the store did not come back: on the way down stages no higher than the knee did not hold.
fn note_way_back(ramp: &Ramp<'_>, place: &str, notes: &mut Notes) {
    let mut below: Vec<&Stage> = Vec::new();
    for ladder in ramp.whole() {
        let Some(held) = ladder.held() else { continue };
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
        if failed > 0 { format!(", in {failed} of them requests failed") } else { String::new() };
    notes.add(format!(
        "{place}: on the way down {} of {} stages no higher than the knee did not hold{failed}: \
         what was too much on the way up still weighs on the store",
        missed.len(),
        below.len()
    ));
}

/// What speaks against the knees of blocks.
fn note_knees(ramp: &Ramp<'_>, place: &str, notes: &mut Notes) {
    let blocks = ramp.whole().count();
    if ramp.whole().any(|ladder| ladder.knee.against > 0) && !ramp.is_contradicted() {
        notes.add(against_words(ramp));
    }
    let late = ramp.whole().filter(|ladder| ladder.held().is_some_and(is_late)).count();
    if late * 2 > blocks {
        notes.add(format!(
            "{place}: at the knee more than {} of the 99th percentile is time before requests \
             were sent: they waited for a client, or the generator was late",
            show::percent(LAG_SHARE_NOTE)
        ));
    }
}

/// How many stages contradict the knees of their blocks.
pub(crate) fn against_words(ramp: &Ramp<'_>) -> String {
    let stumbled = ramp.whole().filter(|ladder| ladder.knee.against > 0).count();
    let stages: usize = ramp.whole().map(|ladder| ladder.knee.against).sum();
    let plural = if stages == 1 { "" } else { "s" };
    format!(
        "`{}`: {stages} stage{plural} in {stumbled} of {} blocks contradict the knee: not held \
         below it, or held above it",
        ramp.cell.id,
        ramp.whole().count()
    )
}

fn is_late(seen: &StageResult<'_>) -> bool {
    let Some(lag) = seen.whole().map(|whole| &whole.lag) else { return false };
    let p99 = seen.quantile(0.99).unwrap_or(0.0);
    !lag.is_empty() && lag.quantile_ns(0.99) as f64 > LAG_SHARE_NOTE * p99
}

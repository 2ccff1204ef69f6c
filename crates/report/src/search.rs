//! Searches for the highest rate within limits: from the probes of a cell's trials to its answer.
//!
//! As during the run, [`stats::search`] derives the result of a trial from its probes
//! (`cell_search`). This module combines the blocks, `words` formats the result as a sentence, and
//! `limited` checks for limits other than the store: all clients busy, or the generator near its
//! own limit. The [rules](crate::rules) decide whether the result is valid.

use model::{Cell, Plan, Trial};
use stats::search::{ProbeResult, Purpose};
use std::collections::BTreeMap;

use crate::footnotes::pinning;
use crate::highest::{Highest, Side, compared};
use crate::metrics::{Whole, over_points};
use crate::notes::Notes;
use crate::recorded::Recorded;
use crate::view::{Comparison, SearchBlock, SearchView, Value};
use cell_search::BlockSearch;

mod cell_search;
mod limited;
mod probes;
mod words;

pub(crate) use cell_search::CellSearch;
pub(crate) use words::per_s;

/// Maximum distance of probes from the answer, as a share of it, for the reported costs.
const NEAR: f64 = 0.1;

/// All searches with their results, except for targets that could not be measured.
pub(crate) fn judged<'a>(recorded: &'a Recorded) -> Vec<(CellSearch<'a>, SearchView)> {
    let cells = recorded.header.plan.cells.iter();
    let cells = cells.filter(|cell| recorded.unavailable(&cell.target).is_none());
    let search = cells.filter_map(|cell| CellSearch::of(recorded, cell));
    let with_view = |search: CellSearch<'a>| {
        let view = search.view();
        (search, view)
    };
    search.map(with_view).collect()
}

/// The highest rate within the limits in a trial, of the most that was answered in any of its
/// probes; `None` without an answer.
pub(crate) fn share_of_peak(plan: &Plan, cell: &Cell, trial: &Trial) -> Option<f64> {
    let block = BlockSearch::of(trial, cell.load.search()?, plan);
    Some(block.rate()?.center / block.peak_per_s()?)
}

/// Footnotes of all searches.
pub(crate) fn note(
    searches: &[(CellSearch<'_>, SearchView)],
    recorded: &Recorded,
    notes: &mut Notes,
) {
    for (search, _) in searches {
        if search.blocks.iter().any(|block| block.brackets() > 1) {
            notes.add(format!(
                "{}the search started again, because what it found first did not agree with what \
                 followed: rates of both are among its probes",
                search.place()
            ));
        }
    }
    if !searches.is_empty() {
        pinning(&recorded.header, notes);
    }
}

/// Comparisons of all pairs of targets with the same search.
pub(crate) fn comparisons<'a>(
    recorded: &Recorded,
    searches: &'a [(CellSearch<'a>, SearchView)],
) -> Vec<Comparison> {
    let side = |(search, view): &'a (CellSearch<'a>, SearchView)| Side {
        cell: search.cell,
        lower_bound_reason: view.lower_bound_reason(),
    };
    let mut pairs = Vec::new();
    for (i, a) in searches.iter().enumerate() {
        for b in &searches[i + 1..] {
            let ((search, one), (other, two)) = (a, b);
            if (&one.workload, &one.load) == (&two.workload, &two.load) {
                pairs.push(Highest {
                    metric: "highest_per_s",
                    operation: &one.operation,
                    sides: [side(a), side(b)],
                    values: search.paired(other),
                });
            }
        }
    }
    compared(&recorded.header.plan, pairs)
}

impl CellSearch<'_> {
    /// The result.
    fn view(&self) -> SearchView {
        let (counted, answer) = (self.counted(), self.rate());
        let limited_by = answer.and_then(|_| self.limited_by());
        let costs = answer.map(|_| self.costs()).unwrap_or_default();
        let (outcome, sentence) = self.together(answer, limited_by.as_ref(), &costs);
        let all = || self.blocks.iter().flat_map(|block| &block.seen);
        let known: Vec<_> = counted.iter().map(|b| b.settings.known(&b.seen)).collect();
        let by_block = self.blocks.iter().map(|block| SearchBlock {
            block: block.trial.block,
            outcome: self.of_block(block),
            answer: block.rate(),
        });
        SearchView {
            workload: self.cell.workload.profile().into(),
            operation: self.cell.workload.phases().first().map_or("", |p| &p.name).into(),
            target: self.cell.target.clone(),
            load: self.cell.load.clone(),
            limits: self.search.slos.iter().map(ToString::to_string).collect(),
            outcome,
            sentence,
            answer,
            blocks: counted.iter().filter(|b| b.found.is_some()).count() as u32,
            peak_per_s: self.blocks.iter().filter_map(BlockSearch::peak_per_s).reduce(f64::max),
            held_per_s: known.iter().filter_map(|(held, _)| *held).max(),
            missed_per_s: known.iter().filter_map(|(_, missed)| *missed).min(),
            held_s: answer.and_then(|_| self.hold_result()).map(|held| held.seconds),
            costs,
            by_block: by_block.collect(),
            tried: all().count() as u32,
            rests: all().filter(|s| s.purpose == Purpose::CoolDown).count() as u32,
            probes: self.blocks.iter().flat_map(|block| self.probes(block)).collect(),
        }
    }

    /// Metrics over the confirmation's probes near each block's answer; empty without any.
    fn costs(&self) -> BTreeMap<String, Value> {
        let mut wholes = Vec::new();
        for block in &self.blocks {
            let rate_per_s = block.rate().map_or(f64::NAN, |rate| rate.center);
            let near = |seen: &ProbeResult| {
                seen.purpose == Purpose::Confirm
                    && !seen.broke
                    && (seen.rate_per_s as f64 / rate_per_s - 1.0).abs() <= NEAR
            };
            let samples = self.recorded.samples_of(block.trial);
            let points = block.pairs().filter(|(seen, _)| near(seen));
            wholes.extend(points.map(|(_, point)| Whole {
                point,
                samples,
                events: &block.trial.events,
            }));
        }
        over_points(&wholes, self.recorded.header.plan.seed)
    }
}

//! The measured points of a phase of a cell, the input of rules for any schedule of the load.

use model::{
    Cell, Counts, PEAK, PageCache, Phase, Plan, Point, Product, Series, Stop, Trial, Workload,
};
use stats::search::Purpose;
use std::cell::OnceCell;
use std::collections::BTreeMap;

use crate::ramp::{Ladder, Ramp};
use crate::recorded::{Recorded, phase_names};
use crate::search::CellSearch;
use crate::view::{RampView, SearchView, WorkerView};

/// Purpose of a point, which decides how strict rules are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A result: the whole offered load must be served.
    Held,
    /// A control phase, which separates an operation from its position in a pair. Its users check
    /// its quality.
    Control,
    /// Part of a search for a limit, where a failure is a result: a stage of a ramp, the peak
    /// before it, a probe of a search, and everything in a cell whose plan removes service or
    /// memory.
    Probing,
}

/// All points of a phase of a cell: one per trial of a steady load, per stage of a ramp, or per
/// probe of a search.
pub(crate) struct Measurement<'a> {
    pub(crate) recorded: &'a Recorded,
    pub(crate) cell: &'a Cell,
    /// Name of the phase.
    pub(crate) phase: &'a str,
    /// The planned phase; `None` if the plan lacks it.
    pub(crate) planned: Option<&'a Phase>,
    /// Products of the target; a cache backend may have several.
    pub(crate) products: &'a [Product],
    /// In order of trials, including trials that failed later.
    pub(crate) points: Vec<(&'a Trial, &'a Point)>,
    /// Points used in figures, for each complete trial, in groups that are judged separately: first
    /// those below the limit (up to the knee of a ramp, hold runs of a search), then those above
    /// it.
    pub(crate) decisive: Vec<(&'a Trial, Vec<Vec<&'a Point>>)>,
    /// Its ramp with the result, if it is a ramp.
    pub(crate) ramp: Option<(&'a Ramp<'a>, &'a RampView)>,
    /// Its search with the result, if it is a search.
    pub(crate) search: Option<&'a (CellSearch<'a>, SearchView)>,
    /// What each worker contributed, once [`workers::of`](crate::workers::of) has computed it.
    pub(crate) workers: OnceCell<Vec<WorkerView>>,
}

/// Counts of an operation over all trials of a phase.
pub(crate) struct Counted {
    /// Name of its row, or of the warm-up.
    pub(crate) name: String,
    /// Over all points, including trials that failed later.
    pub(crate) all: Counts,
    /// Over [`Part::Held`] points of complete trials.
    pub(crate) held: Counts,
    /// True for the warm-up, which is not in any figure.
    pub(crate) is_warmup: bool,
}

/// All measurements in the order of the plan, given its judged `ramps` and `searches`.
pub(crate) fn measurements<'a>(
    recorded: &'a Recorded,
    ramps: &'a [(Ramp<'a>, RampView)],
    searches: &'a [(CellSearch<'a>, SearchView)],
) -> Vec<Measurement<'a>> {
    let plan: &Plan = &recorded.header.plan;
    let mut found = Vec::new();
    for cell in &plan.cells {
        let trials = recorded.latest(&cell.id);
        let planned = cell.workload.phases();
        for phase in phase_names(cell, &trials) {
            let of_phase =
                |(ramp, _): &&(Ramp<'_>, _)| ramp.cell.id == cell.id && ramp.phase == phase;
            let ramp = ramps.iter().find(of_phase).map(|(ramp, view)| (ramp, view));
            let measurement = Measurement {
                recorded,
                cell,
                phase,
                planned: planned.iter().find(|planned| planned.name == phase),
                products: plan.target(&cell.target).map_or(&[], |target| target.products()),
                points: points(&trials, phase),
                decisive: match ramp {
                    Some((ramp, _)) => {
                        ramp.whole().map(|ladder| (ladder.trial, by_knee(ladder))).collect()
                    }
                    None => whole(&trials, phase),
                },
                ramp,
                search: searches
                    .iter()
                    .find(|(search, view)| search.cell.id == cell.id && view.operation == phase),
                workers: OnceCell::new(),
            };
            found.extend((!measurement.points.is_empty()).then_some(measurement));
        }
    }
    found
}

fn points<'a>(trials: &[&'a Trial], phase: &str) -> Vec<(&'a Trial, &'a Point)> {
    let own = |trial: &&'a Trial| {
        let trial: &'a Trial = trial;
        let own = trial.points.iter().filter(|point| point.phase == phase);
        own.map(|point| (trial, point)).collect::<Vec<_>>()
    };
    trials.iter().flat_map(own).collect()
}

/// The points of each trial as one group: the point of a steady phase, or all unbroken probes of a
/// search.
fn whole<'a>(trials: &[&'a Trial], phase: &str) -> Vec<(&'a Trial, Vec<Vec<&'a Point>>)> {
    let whole = trials.iter().filter(|trial| trial.failure.is_none());
    let group = |trial: &&'a Trial| {
        let is_below = |p: &&Point| p.probe.is_none_or(|step| step.purpose == Purpose::Hold);
        let own = trial.points.iter().filter(|point| point.phase == phase);
        let own = own.filter(|point| point.probe.is_none() || point.failure.is_none());
        let (below, beyond): (Vec<&Point>, Vec<&Point>) = own.partition(is_below);
        let is_any = !below.is_empty() || !beyond.is_empty();
        is_any.then(|| (*trial, vec![below, beyond]))
    };
    whole.filter_map(group).collect()
}

/// The stages up to the knee, and the one above it.
fn by_knee<'a>(ladder: &Ladder<'a>) -> Vec<Vec<&'a Point>> {
    let above = ladder.first_failing().map(|seen| seen.result);
    vec![ladder.up_to_knee().map(|seen| seen.result).collect(), above.into_iter().collect()]
}

impl<'a> Measurement<'a> {
    /// Cell and phase as part of a sentence: `redis/steady/8` read.
    pub(crate) fn label(&self) -> String {
        format!("`{}` {}", self.cell.id, self.phase)
    }

    /// Purpose of a point.
    pub(crate) fn part(&self, (_, point): &(&Trial, &Point)) -> Part {
        if self.is_control() {
            Part::Control
        } else if point.probe.is_some()
            || point.stage.is_some()
            || self.phase == PEAK
            || self.cell.workload.may_fail()
        {
            Part::Probing
        } else {
            Part::Held
        }
    }

    fn is_control(&self) -> bool {
        self.planned.is_some_and(|planned| planned.control.is_some())
    }

    /// Points of complete trials whose whole load must be served; empty if the phase searches for a
    /// limit.
    pub(crate) fn held(&self) -> Vec<(&'a Trial, &'a Point)> {
        let held = |at: &&(&Trial, &Point)| {
            let answered = at.1.operations.iter().any(|o| o.counts.total() > 0);
            at.0.failure.is_none() && answered && self.part(at) == Part::Held
        };
        self.points.iter().filter(held).copied().collect()
    }

    /// Points used in figures, of all complete trials.
    pub(crate) fn decisive(&self) -> impl Iterator<Item = &'a Point> {
        self.decisive.iter().flat_map(|(_, groups)| groups.iter().flatten().copied())
    }

    /// Planned length of a point, nanoseconds; `None` for stages, and for probes at a rate: if
    /// nothing is answered, their requests are late or fail, so they fail anyway.
    pub(crate) fn planned_ns(&self, (_, point): (&Trial, &Point)) -> Option<u64> {
        if let Some(step) = point.probe {
            let is_whole = step.purpose == Purpose::Peak && point.failure.is_none();
            return is_whole.then_some(step.length_ns);
        }
        let follows_stages = self.changes_by_plan() || point.stage.is_some();
        match self.planned?.stop {
            Stop::AfterNs(planned_ns) if !follows_stages => Some(planned_ns),
            _ => None,
        }
    }

    /// True if rate or clients change during a point as planned.
    pub(crate) fn changes_by_plan(&self) -> bool {
        self.cell.load.is_staged() && !self.is_control() && self.phase != PEAK
    }

    /// True if requests are sent when due, whether or not earlier ones were answered.
    pub(crate) fn is_paced(&self, (_, point): (&Trial, &Point)) -> bool {
        match point.probe {
            Some(step) => step.rate_per_s > 0,
            None if point.stage.is_some() => point.planned_per_s.is_some(),
            None => self.cell.load.in_phase(self.phase).is_planned(),
        }
    }

    /// True for a phase with only reads.
    pub(crate) fn only_reads(&self) -> bool {
        self.planned.is_some_and(|p| !p.mix.is_empty() && p.mix.keys().all(|o| o == "read"))
    }

    /// True if the phase has a fixed length and does not change the number of sessions, keys or
    /// records. A cache write replaces a record, and cleaned records are restored.
    pub(crate) fn keeps_its_data(&self) -> bool {
        let is_cache = matches!(self.cell.workload, Workload::AppCache(_));
        self.planned.is_some_and(|p| {
            let adds = |name| p.mix.get(name).is_some_and(|w| *w > 0.0);
            let grows = !is_cache && (adds("write") || adds("insert") || adds("new"));
            matches!(p.stop, Stop::AfterNs(_)) && !grows
        })
    }

    /// True if the page cache was empty at the start of the phase, and fills during it.
    pub(crate) fn is_cold(&self) -> bool {
        matches!(&self.cell.workload, Workload::AppCache(c) if c.page_cache == PageCache::Cold)
    }

    /// Completed operations over time, of complete trials.
    pub(crate) fn series(&self) -> impl Iterator<Item = &'a Series> {
        self.decisive.iter().filter_map(|(trial, _)| trial.series(self.phase))
    }

    /// Each operation that is not a sum of others, and the warm-up.
    pub(crate) fn operations(&self) -> Vec<Counted> {
        let mut found: BTreeMap<String, (Counts, Counts)> = BTreeMap::new();
        let mut warmup = Counts::default();
        for at in &self.points {
            let (trial, point) = at;
            let is_held = trial.failure.is_none() && self.part(at) == Part::Held;
            let parts = point.operations.len() > 1;
            for result in point.operations.iter().filter(|o| !parts || o.operation != self.phase) {
                let name = match &result.operation {
                    own if own == self.phase => own.clone(),
                    part => format!("{}.{part}", self.phase),
                };
                let (all, held) = found.entry(name).or_default();
                all.merge(&result.counts);
                if is_held {
                    held.merge(&result.counts);
                }
            }
            warmup.merge(&point.warmup);
        }
        let operation = |(name, (all, held))| Counted { name, all, held, is_warmup: false };
        let name = format!("{}, warm-up", self.phase);
        let warmup = Counted { name, all: warmup, held: Counts::default(), is_warmup: true };
        found.into_iter().map(operation).chain([warmup]).collect()
    }
}

//! The measured points of a phase of a cell, the input of rules for any schedule of the load.

use model::{
    Cell, Counts, PEAK, PageCache, Phase, Plan, Point, Product, Series, Stop, Trial, Workload,
};
use stats::search::Purpose;
use std::collections::BTreeMap;

use crate::ramp::{Ladder, Ramp};
use crate::recorded::{Recorded, phase_names};
use crate::search::Sought;
use crate::view::{RampView, SearchView};

/// What a point is there for, by which a rule may ask more or less of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A figure of its own: all that is offered must be served.
    Held,
    /// It tells an operation apart from its place in a pair, and what does so carries its doubt.
    Control,
    /// It looks for a limit, where failing is an answer: a stage of a ladder, the peak before it, a
    /// probe of a search, and all of a cell from which the plan takes service or memory away.
    Probing,
}

/// All points of a phase of a cell: one a trial of a steady load, one a stage of a ladder, one a
/// probe of a search.
pub(crate) struct Measurement<'a> {
    pub(crate) recorded: &'a Recorded,
    pub(crate) cell: &'a Cell,
    /// Name of the phase.
    pub(crate) phase: &'a str,
    /// The phase as planned; `None` where the record holds one that the plan does not.
    pub(crate) planned: Option<&'a Phase>,
    /// Of a cache's backend several.
    pub(crate) products: &'a [Product],
    /// In the order of trials; also of trials that failed later.
    pub(crate) points: Vec<(&'a Trial, &'a Point)>,
    /// Of each trial that came to its end the points that its figures rest on, in groups that are
    /// looked at apart: first those below the limit that is looked for (of a ladder up to the knee,
    /// of a search in long runs), then those beyond it.
    pub(crate) decisive: Vec<(&'a Trial, Vec<Vec<&'a Point>>)>,
    /// The ladder that it is, with what it came to.
    pub(crate) ramp: Option<(&'a Ramp<'a>, &'a RampView)>,
    /// The search that it is, with what it came to.
    pub(crate) search: Option<&'a (Sought<'a>, SearchView)>,
}

/// What an operation of a phase did over all of its trials.
pub(crate) struct Counted {
    /// Name of its row, or of the warm-up of all.
    pub(crate) name: String,
    /// Over all points, also of trials that failed later.
    pub(crate) all: Counts,
    /// Over [`Part::Held`] points of trials that came to their end.
    pub(crate) held: Counts,
    /// True for what is in no figure.
    pub(crate) is_warmup: bool,
}

/// Everything that was measured, in the order of the plan. `ramps` are the ladders among it,
/// `searches` the searches.
pub(crate) fn measurements<'a>(
    recorded: &'a Recorded,
    ramps: &'a [(Ramp<'a>, RampView)],
    searches: &'a [(Sought<'a>, SearchView)],
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
                    .find(|(sought, view)| sought.cell.id == cell.id && view.operation == phase),
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

/// Of each trial the points together: the one of a steady phase, all probes of a search that did
/// not break.
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
    let above = ladder.missed().map(|seen| seen.result);
    vec![ladder.up_to_knee().map(|seen| seen.result).collect(), above.into_iter().collect()]
}

impl<'a> Measurement<'a> {
    /// Cell and phase as part of a sentence: `redis/steady/8` read.
    pub(crate) fn label(&self) -> String {
        format!("`{}` {}", self.cell.id, self.phase)
    }

    /// What a point of it is there for.
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

    /// Points of trials that came to their end, and that must be served whole; empty where the
    /// phase looks for a limit.
    pub(crate) fn held(&self) -> Vec<(&'a Trial, &'a Point)> {
        let held = |at: &&(&Trial, &Point)| {
            let answered = at.1.operations.iter().any(|o| o.counts.total() > 0);
            at.0.failure.is_none() && answered && self.part(at) == Part::Held
        };
        self.points.iter().filter(held).copied().collect()
    }

    /// Points that figures rest on, of all trials that came to their end.
    pub(crate) fn decisive(&self) -> impl Iterator<Item = &'a Point> {
        self.decisive.iter().flat_map(|(_, groups)| groups.iter().flatten().copied())
    }

    /// How long a point was planned to last, nanoseconds, where its end is not on the load's own
    /// clock: neither a stage nor a probe at a rate, whose requests are late or fail where nobody
    /// answers, and which miss by that.
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

    /// True when the phase has a fixed length and leaves as many sessions, keys or records as it
    /// found. A write of a cache replaces a record, and what a clean removes is saved again.
    pub(crate) fn keeps_its_data(&self) -> bool {
        let is_cache = matches!(self.cell.workload, Workload::AppCache(_));
        self.planned.is_some_and(|p| {
            let adds = |name| p.mix.get(name).is_some_and(|w| *w > 0.0);
            let grows = !is_cache && (adds("write") || adds("insert"));
            matches!(p.stop, Stop::AfterNs(_)) && !grows
        })
    }

    /// True if the page cache was empty at the start of the phase, and fills during it.
    pub(crate) fn is_cold(&self) -> bool {
        matches!(&self.cell.workload, Workload::AppCache(c) if c.page_cache == PageCache::Cold)
    }

    /// What was finished in the course of its phase, of trials that came to their end.
    pub(crate) fn series(&self) -> impl Iterator<Item = &'a Series> {
        self.decisive.iter().filter_map(|(trial, _)| trial.series(self.phase))
    }

    /// Each operation that is no sum of others, and the warm-up of all.
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

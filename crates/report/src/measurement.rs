//! What a phase of a cell measured, as rules look at it: all of its points, whatever the schedule
//! of its load.

use model::{Cell, Counts, Phase, Point, Trial};
use std::collections::BTreeMap;

use crate::ramp::{Climb, Ramp};
use crate::recorded::{Recorded, phase_names};

/// All points of a phase of a cell: one a trial of a steady load, one a stage of a ladder, one a
/// probe of a search.
pub(crate) struct Measurement<'a> {
    pub(crate) cell: &'a Cell,
    /// Name of the phase.
    pub(crate) phase: &'a str,
    /// The phase as planned; `None` where the record holds one that the plan does not.
    pub(crate) planned: Option<&'a Phase>,
    /// In the order of trials; also of trials that failed later.
    pub(crate) points: Vec<(&'a Trial, &'a Point)>,
    /// Of each trial that came to its end the points that its figures rest on, in groups that are
    /// looked at apart: of a ladder those up to the knee, and the one above it.
    pub(crate) decisive: Vec<(&'a Trial, Vec<Vec<&'a Point>>)>,
}

/// Everything that was measured, in the order of the plan. `ramps` are the ladders among it.
pub(crate) fn measurements<'a>(
    recorded: &'a Recorded,
    ramps: &'a [Ramp<'a>],
) -> Vec<Measurement<'a>> {
    let mut found = Vec::new();
    for cell in &recorded.header.plan.cells {
        let trials = recorded.latest(&cell.id);
        let planned = cell.workload.phases();
        for phase in phase_names(cell, &trials) {
            let ramp = ramps.iter().find(|ramp| ramp.cell.id == cell.id && ramp.phase == phase);
            let measurement = Measurement {
                cell,
                phase,
                planned: planned.iter().find(|planned| planned.name == phase),
                points: points(&trials, phase),
                decisive: match ramp {
                    Some(ramp) => ramp.whole().map(|climb| (climb.trial, by_knee(climb))).collect(),
                    None => alone(&trials, phase),
                },
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

/// Each point that is a whole phase, by itself.
fn alone<'a>(trials: &[&'a Trial], phase: &str) -> Vec<(&'a Trial, Vec<Vec<&'a Point>>)> {
    let whole = trials.iter().filter(|trial| trial.failure.is_none());
    whole.filter_map(|trial| Some((*trial, vec![vec![trial.point(phase)?]]))).collect()
}

/// The stages up to the knee, and the one above it.
fn by_knee<'a>(climb: &Climb<'a>) -> Vec<Vec<&'a Point>> {
    let above = climb.missed().map(|seen| seen.result);
    vec![climb.up_to_knee().map(|seen| seen.result).collect(), above.into_iter().collect()]
}

impl Measurement<'_> {
    /// Cell and phase, for sentences: `redis/steady/8` read.
    pub(crate) fn label(&self) -> String {
        format!("`{}` {}", self.cell.id, self.phase)
    }

    /// True where nothing but reads is done.
    pub(crate) fn only_reads(&self) -> bool {
        self.planned.is_some_and(|p| !p.mix.is_empty() && p.mix.keys().all(|o| o == "read"))
    }

    /// Counts of each operation that is no sum of others, over all points of trials that `count`,
    /// by its row's name.
    pub(crate) fn operations(&self, count: impl Fn(&Trial) -> bool) -> BTreeMap<String, Counts> {
        let mut found: BTreeMap<String, Counts> = BTreeMap::new();
        for (_, point) in self.points.iter().filter(|(trial, _)| count(trial)) {
            let parts = point.operations.len() > 1;
            for result in point.operations.iter().filter(|o| !parts || o.operation != self.phase) {
                let name = match &result.operation {
                    own if own == self.phase => own.clone(),
                    part => format!("{}.{part}", self.phase),
                };
                found.entry(name).or_default().merge(&result.counts);
            }
        }
        found
    }
}

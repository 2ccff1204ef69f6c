//! A record's stages, each set against the rule of [`stats::knee`].

use model::{Cell, OperationResult, PEAK, Point, Sample, Trial, TrialEvent};
use stats::Histogram;
use stats::knee::{Knee, Stage, Way, knee, pace, value_at, ways, within};

use crate::limits::{AGAINST_SHARE_MAX, NOISY_TRIALS_MAX};
use crate::metrics::Whole;
use crate::recorded::Recorded;

/// The ramps of a cell's phase.
pub(crate) struct Ramp<'a> {
    pub(crate) cell: &'a Cell,
    /// Name of the phase.
    pub(crate) phase: &'a str,
    /// In block order; also of trials that failed in their course.
    pub(crate) ladders: Vec<Ladder<'a>>,
}

/// The ramp of one block.
pub(crate) struct Ladder<'a> {
    pub(crate) trial: &'a Trial,
    /// In the order of time.
    pub(crate) stages: Vec<StageResult<'a>>,
    /// The stages of the way up, in rising order of what was planned.
    pub(crate) up: Vec<usize>,
    /// Of the way up: its numbers are places in `up`.
    pub(crate) knee: Knee,
}

/// All ramps of a record, in the plan's order; cells without any stage are left out.
pub(super) fn ramps(recorded: &Recorded) -> Vec<Ramp<'_>> {
    let cells = recorded.header.plan.cells.iter().filter(|cell| cell.load.is_ladder());
    let phases =
        cells.flat_map(|cell| cell.workload.phases().iter().map(move |p| (cell, p.name.as_str())));
    let ramp = |(cell, phase)| Ramp { cell, phase, ladders: ladders(recorded, cell, phase) };
    phases.map(ramp).filter(|ramp| !ramp.ladders.is_empty()).collect()
}

fn ladders<'a>(recorded: &'a Recorded, cell: &Cell, phase: &'a str) -> Vec<Ladder<'a>> {
    let ladder = |trial| Ladder::of(trial, phase, recorded.samples_of(trial));
    recorded.latest(&cell.id).into_iter().filter_map(ladder).collect()
}

/// One stage, and whether it held.
pub(crate) struct StageResult<'a> {
    pub(crate) result: &'a Point,
    pub(crate) rule: Stage,
    pub(crate) way: Way,
    /// What was sampled in its trial.
    samples: &'a [Sample],
    /// What happened in its trial.
    events: &'a [TrialEvent],
}

impl<'a> Ramp<'a> {
    /// The ramps that came to their end.
    pub(crate) fn whole(&self) -> impl Iterator<Item = &Ladder<'a>> {
        self.ladders.iter().filter(|ladder| ladder.is_whole())
    }

    /// True where more stages contradict the knee than may, in more blocks than may be noisy.
    pub(crate) fn is_contradicted(&self) -> bool {
        let doubted = |ladder: &&Ladder<'_>| ladder.against_share() > AGAINST_SHARE_MAX;
        let doubted = self.whole().filter(doubted).count();
        doubted as f64 > NOISY_TRIALS_MAX * self.whole().count() as f64
    }
}

impl<'a> Ladder<'a> {
    fn of(trial: &'a Trial, phase: &str, samples: &'a [Sample]) -> Option<Self> {
        let stages = trial.points.iter().filter(|p| p.stage.is_some() && p.phase == phase);
        let known: Vec<(&Point, &OperationResult)> = stages
            .filter(|stage| stage.length_ns > 0 && !is_rest(stage))
            .filter_map(|stage| Some((stage, stage.whole()?)))
            .collect();
        let interval_ns = trial.series(phase).map_or(0, |series| series.interval_ns);
        let planned: Vec<f64> = known.iter().map(|(stage, _)| planned(stage)).collect();
        let served = |(stage, whole): &(&Point, &OperationResult)| {
            (planned_clients(stage), whole.rate_per_s)
        };
        let pace = pace(&known.iter().map(served).collect::<Vec<_>>());
        let seen = |((stage, whole), way): ((&'a Point, &OperationResult), Way)| {
            let rule = rule((stage, whole), interval_ns, pace.unwrap_or(0.0));
            StageResult { result: stage, rule, way, samples, events: &trial.events }
        };
        let stages: Vec<StageResult<'_>> =
            known.into_iter().zip(ways(&planned)).map(seen).collect();
        let mut up: Vec<usize> = (0..stages.len()).filter(|i| stages[*i].way == Way::Up).collect();
        up.sort_by(|a, b| planned[*a].total_cmp(&planned[*b]));
        let knee = knee(&up.iter().map(|i| stages[*i].rule).collect::<Vec<_>>());
        (!stages.is_empty()).then_some(Self { trial, stages, up, knee })
    }

    /// True where the trial came to its end.
    pub(crate) fn is_whole(&self) -> bool {
        self.trial.failure.is_none()
    }

    fn on_the_way_up(&self, place: usize) -> &StageResult<'a> {
        &self.stages[self.up[place]]
    }

    /// The stages of the way up that are no higher than the knee, or the lowest.
    pub(crate) fn up_to_knee(&self) -> impl Iterator<Item = &StageResult<'a>> {
        self.up[..=self.knee.held.unwrap_or(0)].iter().map(|i| &self.stages[*i])
    }

    /// Share of the stages of the way up that contradict the knee, 0 to 1.
    fn against_share(&self) -> f64 {
        self.knee.against as f64 / self.up.len().max(1) as f64
    }

    /// The stage below the knee, which held.
    pub(crate) fn held(&self) -> Option<&StageResult<'a>> {
        self.knee.held.map(|place| self.on_the_way_up(place))
    }

    /// The stage above the knee, which did not hold.
    pub(crate) fn missed(&self) -> Option<&StageResult<'a>> {
        self.knee.missed.map(|place| self.on_the_way_up(place))
    }

    /// The last stage on the way up below the point from which on the 99th percentile is not below
    /// a limit, or stages do not hold.
    pub(crate) fn within(&self, limit_ns: u64) -> Option<&StageResult<'a>> {
        let time =
            |i: &usize| self.stages[*i].rule.holds().then(|| self.stages[*i].quantile(0.99))?;
        let times: Vec<Option<f64>> = self.up.iter().map(time).collect();
        within(&times, limit_ns as f64).map(|place| self.on_the_way_up(place))
    }

    /// Requests a second with all clients at work, just before.
    pub(crate) fn peak(&self) -> Option<f64> {
        self.trial.point(PEAK)?.whole().map(|whole| whole.rate_per_s)
    }

    /// The most that was answered a second, in any stage or with all clients at work. Beyond what
    /// a stage asked for it only worked off a queue, which is faster than what it sustains.
    pub(crate) fn reached(&self) -> f64 {
        let answered = |stage: &StageResult<'_>| match stage.result.planned_per_s {
            Some(_) => stage.rule.answered_per_s.min(stage.rule.asked_per_s),
            None => stage.rule.answered_per_s,
        };
        self.stages.iter().map(answered).chain(self.peak()).fold(0.0, f64::max)
    }

    /// What `read` reads at a rate up to the knee, between the stages next to it that held: what
    /// stumbled says nothing.
    pub(crate) fn at_rate(
        &self,
        rate_per_s: f64,
        read: impl Fn(&StageResult<'a>) -> Option<f64>,
    ) -> Option<f64> {
        let held = self.up[..=self.knee.held?].iter().filter(|i| self.stages[**i].rule.holds());
        self.between(&held.copied().collect::<Vec<_>>(), rate_per_s, read)
    }

    /// The same, also beyond the knee.
    pub(crate) fn at_any_rate(
        &self,
        rate_per_s: f64,
        read: impl Fn(&StageResult<'a>) -> Option<f64>,
    ) -> Option<f64> {
        self.between(&self.up, rate_per_s, read)
    }

    fn between(
        &self,
        stages: &[usize],
        rate_per_s: f64,
        read: impl Fn(&StageResult<'a>) -> Option<f64>,
    ) -> Option<f64> {
        let point = |i: &usize| Some((self.stages[*i].rate(), read(&self.stages[*i])?));
        let points: Vec<(f64, f64)> = stages.iter().filter_map(point).collect();
        value_at(&points, rate_per_s)
    }
}

impl StageResult<'_> {
    /// The rate that it stands for, requests a second: what was asked for under an open load, what
    /// was answered under a closed one, whose clients ask when they were answered.
    pub(crate) fn rate(&self) -> f64 {
        match self.result.planned_per_s {
            Some(_) => self.rule.asked_per_s,
            None => self.rule.answered_per_s,
        }
    }

    /// What stands for all operations; a stage without any is none of a ladder.
    pub(crate) fn whole(&self) -> Option<&OperationResult> {
        self.result.whole()
    }

    /// A quantile of all operations' times, nanoseconds; `None` where it is not known: without an
    /// answer, and beyond the share that was answered.
    pub(crate) fn quantile(&self, q: f64) -> Option<f64> {
        quantile(self.result, self.whole()?, q)
    }

    /// The same of one operation.
    pub(crate) fn quantile_of(&self, operation: &str, q: f64) -> Option<f64> {
        let found = self.result.operation(operation)?;
        quantile(self.result, found, q)
    }

    /// CPUs that the server used.
    pub(crate) fn server_cpus(&self) -> Option<f64> {
        Some(self.result.server_cpu_ns? as f64 / self.result.length_ns as f64)
    }

    /// CPUs that the generator used.
    pub(crate) fn generator_cpus(&self) -> f64 {
        self.result.generator_cpu_ns as f64 / self.result.length_ns as f64
    }

    /// What it tells beside the times of its operations.
    pub(super) fn whole_point(&self) -> Whole<'_> {
        Whole { point: self.result, samples: self.samples, events: self.events }
    }
}

fn quantile(stage: &Point, operation: &OperationResult, q: f64) -> Option<f64> {
    let times = operation.counts.times(times(stage, operation), 0);
    times.and_failed(unsent_of(stage, operation), 0).known(q).map(|ns| ns as f64)
}

/// Requests that were due and never sent, which are no operation of a kind.
pub(crate) fn unsent_of(stage: &Point, operation: &OperationResult) -> u64 {
    let is_whole = stage.whole().is_some_and(|whole| whole.operation == operation.operation);
    if is_whole { stage.unsent } else { 0 }
}

/// The times that tell how long users wait.
pub(crate) fn times<'a>(stage: &Point, operation: &'a OperationResult) -> &'a Histogram {
    if stage.planned_per_s.is_some() { &operation.response } else { &operation.service }
}

/// True for the time between two steps in which nothing is asked.
fn is_rest(stage: &Point) -> bool {
    stage.planned_per_s == Some(0.0)
}

/// What a stage is ordered by: its rate, or its clients.
pub(crate) fn planned(stage: &Point) -> f64 {
    stage.planned_per_s.unwrap_or_else(|| planned_clients(stage))
}

fn planned_clients(stage: &Point) -> f64 {
    f64::from(stage.clients)
}

fn rule((stage, whole): (&Point, &OperationResult), interval_ns: u64, pace: f64) -> Stage {
    let seconds = stage.length_ns as f64 / 1e9;
    let answered_per_s = whole.rate_per_s;
    let total = whole.counts.total() + stage.unsent;
    let error_share = (whole.counts.error + stage.unsent) as f64 / total.max(1) as f64;
    if stage.planned_per_s.is_none() {
        return Stage::closed(planned_clients(stage), pace, answered_per_s, error_share);
    }
    let answered = answered_per_s * seconds;
    Stage::open(total as f64, answered, seconds, interval_ns as f64 / 1e9, error_share)
}

//! The stages of a record, judged by the rule of [`stats::knee`].

use model::{Cell, OperationResult, PEAK, Point, Sample, Trial, TrialEvent};
use stats::Histogram;
use stats::knee::{Knee, Stage, Way, knee, pace, value_at, ways, within};

use crate::limits::{AGAINST_SHARE_MAX, NOISY_TRIALS_MAX};
use crate::metrics::{METRICS, Whole};
use crate::recorded::Recorded;

/// The ramps of a cell's phase.
pub(crate) struct Ramp<'a> {
    pub(crate) cell: &'a Cell,
    /// Name of the phase.
    pub(crate) phase: &'a str,
    /// In block order, including failed trials.
    pub(crate) ladders: Vec<Ladder<'a>>,
}

/// The ramp of one block.
pub(crate) struct Ladder<'a> {
    pub(crate) trial: &'a Trial,
    /// In order of time.
    pub(crate) stages: Vec<StageResult<'a>>,
    /// Indices of the stages of the way up, in ascending order of the planned load.
    pub(crate) up: Vec<usize>,
    /// Knee of the way up, with indices into `up`.
    pub(crate) knee: Knee,
}

/// All ramps of a record, in the plan's order; cells without stages are ignored.
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

/// A stage with its verdict.
pub(crate) struct StageResult<'a> {
    pub(crate) result: &'a Point,
    pub(crate) rule: Stage,
    pub(crate) way: Way,
    /// Samples of its trial.
    samples: &'a [Sample],
    /// Events of its trial.
    events: &'a [TrialEvent],
}

impl<'a> Ramp<'a> {
    /// The complete ramps.
    pub(crate) fn whole(&self) -> impl Iterator<Item = &Ladder<'a>> {
        self.ladders.iter().filter(|ladder| ladder.is_whole())
    }

    /// True if too many stages contradict the knee in too many blocks.
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
            .filter(|stage| stage.length_ns > 0 && !is_pause(stage))
            .filter_map(|stage| Some((stage, stage.whole()?)))
            .collect();
        let interval_ns = trial.series(phase).map_or(0, |series| series.interval_ns);
        let planned: Vec<f64> = known.iter().map(|(stage, _)| planned(stage)).collect();
        let served = |(stage, whole): &(&Point, &OperationResult)| {
            (planned_clients(stage), whole.rate_per_s)
        };
        let pace = pace(&known.iter().map(served).collect::<Vec<_>>());
        let judged = |((stage, whole), way): ((&'a Point, &OperationResult), Way)| {
            let rule = rule((stage, whole), interval_ns, pace.unwrap_or(0.0));
            StageResult { result: stage, rule, way, samples, events: &trial.events }
        };
        let stages: Vec<StageResult<'_>> =
            known.into_iter().zip(ways(&planned)).map(judged).collect();
        let mut up: Vec<usize> = (0..stages.len()).filter(|i| stages[*i].way == Way::Up).collect();
        up.sort_by(|a, b| planned[*a].total_cmp(&planned[*b]));
        let knee = knee(&up.iter().map(|i| stages[*i].rule).collect::<Vec<_>>());
        (!stages.is_empty()).then_some(Self { trial, stages, up, knee })
    }

    /// True if the trial is complete.
    pub(crate) fn is_whole(&self) -> bool {
        self.trial.failure.is_none()
    }

    fn on_the_way_up(&self, place: usize) -> &StageResult<'a> {
        &self.stages[self.up[place]]
    }

    /// The stages of the way up to the knee, at least the lowest.
    pub(crate) fn up_to_knee(&self) -> impl Iterator<Item = &StageResult<'a>> {
        self.up[..=self.knee.held.unwrap_or(0)].iter().map(|i| &self.stages[*i])
    }

    /// Share of the stages of the way up that contradict the knee, 0 to 1.
    fn against_share(&self) -> f64 {
        self.knee.against as f64 / self.up.len().max(1) as f64
    }

    /// The passing stage below the knee.
    pub(crate) fn last_passing(&self) -> Option<&StageResult<'a>> {
        self.knee.held.map(|place| self.on_the_way_up(place))
    }

    /// The failing stage above the knee.
    pub(crate) fn first_failing(&self) -> Option<&StageResult<'a>> {
        self.knee.missed.map(|place| self.on_the_way_up(place))
    }

    /// The last stage on the way up before the 99th percentile exceeds a limit or stages fail.
    pub(crate) fn within(&self, limit_ns: u64) -> Option<&StageResult<'a>> {
        let time =
            |i: &usize| self.stages[*i].rule.holds().then(|| self.stages[*i].quantile(0.99))?;
        let times: Vec<Option<f64>> = self.up.iter().map(time).collect();
        within(&times, limit_ns as f64).map(|place| self.on_the_way_up(place))
    }

    /// Requests per second with all clients active, measured just before.
    pub(crate) fn peak(&self) -> Option<f64> {
        self.trial.point(PEAK)?.whole().map(|whole| whole.rate_per_s)
    }

    /// Highest answered rate of any stage or with all clients active, requests per second. A rate
    /// above the planned one only drains a queue and does not count.
    pub(crate) fn reached(&self) -> f64 {
        let answered = |stage: &StageResult<'_>| match stage.result.planned_per_s {
            Some(_) => stage.rule.answered_per_s.min(stage.rule.asked_per_s),
            None => stage.rule.answered_per_s,
        };
        self.stages.iter().map(answered).chain(self.peak()).fold(0.0, f64::max)
    }

    /// Value of `read` at a rate up to the knee, interpolated between the nearest passing stages.
    pub(crate) fn at_rate(
        &self,
        rate_per_s: f64,
        read: impl Fn(&StageResult<'a>) -> Option<f64>,
    ) -> Option<f64> {
        let held = self.up[..=self.knee.held?].iter().filter(|i| self.stages[**i].rule.holds());
        self.between(&held.copied().collect::<Vec<_>>(), rate_per_s, read)
    }

    /// The same, also above the knee.
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
    /// Its rate, requests per second: the planned one under an open load, the answered one under a
    /// closed load.
    pub(crate) fn rate(&self) -> f64 {
        match self.result.planned_per_s {
            Some(_) => self.rule.asked_per_s,
            None => self.rule.answered_per_s,
        }
    }

    /// The total over all operations; stages without operations are not part of a ramp.
    pub(crate) fn whole(&self) -> Option<&OperationResult> {
        self.result.whole()
    }

    /// A latency quantile over all operations, nanoseconds; `None` if unknown: without answers, and
    /// beyond the answered share.
    pub(crate) fn quantile(&self, q: f64) -> Option<f64> {
        quantile(self.result, self.whole()?, q)
    }

    /// The same for one operation.
    pub(crate) fn quantile_of(&self, operation: &str, q: f64) -> Option<f64> {
        let found = self.result.operation(operation)?;
        quantile(self.result, found, q)
    }

    /// The same for one operation, or over all without one.
    pub(crate) fn quantile_of_any(&self, operation: Option<&str>, q: f64) -> Option<f64> {
        match operation {
            Some(operation) => self.quantile_of(operation, q),
            None => self.quantile(q),
        }
    }

    /// Mean response time over an operation, or over all, nanoseconds; `None` if any request failed
    /// or was never sent, because those have no time.
    pub(crate) fn mean(&self, operation: Option<&str>) -> Option<f64> {
        let found = match operation {
            Some(operation) => self.result.operation(operation)?,
            None => self.whole()?,
        };
        let is_complete = found.counts.error == 0 && self.result.unsent == 0;
        let times = times(self.result, found);
        (is_complete && !times.is_empty()).then(|| times.mean_ns())
    }

    /// A percentile, or without one the mean, of an operation's service time, nanoseconds; `None`
    /// if unknown.
    pub(crate) fn service_of(&self, operation: &str, q: Option<f64>) -> Option<f64> {
        service_time(self.result.operation(operation)?, q)
    }

    /// Mean resident memory of the server over its samples, bytes; `None` without samples.
    pub(crate) fn resident_bytes(&self) -> Option<f64> {
        let (from, length) = (self.result.begun_ns, self.result.length_ns);
        let within = from..=from + length;
        let own = self.samples.iter().filter(|sample| within.contains(&sample.at_ns));
        let bytes: Vec<f64> =
            own.filter_map(|s| Some(s.server.as_ref()?.resident_bytes as f64)).collect();
        (!bytes.is_empty()).then(|| bytes.iter().sum::<f64>() / bytes.len() as f64)
    }

    /// Bytes that the server received and sent per request.
    pub(crate) fn network_bytes_per_op(&self) -> Option<f64> {
        let metric = METRICS.iter().find(|metric| metric.key == "network_bytes_per_op")?;
        metric.read(&self.whole_point())
    }

    /// CPUs used by the server.
    pub(crate) fn server_cpus(&self) -> Option<f64> {
        Some(self.result.server_cpu_ns? as f64 / self.result.length_ns as f64)
    }

    /// CPUs used by the generator.
    pub(crate) fn generator_cpus(&self) -> f64 {
        self.result.generator_cpu_ns as f64 / self.result.length_ns as f64
    }

    /// The stage as a point with its samples, for metrics.
    pub(super) fn whole_point(&self) -> Whole<'_> {
        Whole { point: self.result, samples: self.samples, events: self.events }
    }
}

/// A percentile, or without one the mean, of an operation's service time, nanoseconds; `None` if
/// unknown.
pub(super) fn service_time(of: &OperationResult, q: Option<f64>) -> Option<f64> {
    let ns = match q {
        Some(q) => of.counts.times(&of.service, 0).known(q)? as f64,
        None if of.service.is_empty() => return None,
        None => of.service.mean_ns(),
    };
    (ns > 0.0).then_some(ns)
}

fn quantile(stage: &Point, operation: &OperationResult, q: f64) -> Option<f64> {
    let times = operation.counts.times(times(stage, operation), 0);
    times.and_failed(unsent_of(stage, operation), 0).known(q).map(|ns| ns as f64)
}

/// Requests that were due but never sent; they have no kind of operation.
pub(crate) fn unsent_of(stage: &Point, operation: &OperationResult) -> u64 {
    let is_whole = stage.whole().is_some_and(|whole| whole.operation == operation.operation);
    if is_whole { stage.unsent } else { 0 }
}

/// The relevant latency: response time for an open load, otherwise service time.
pub(crate) fn times<'a>(stage: &Point, operation: &'a OperationResult) -> &'a Histogram {
    if stage.planned_per_s.is_some() { &operation.response } else { &operation.service }
}

/// True for the pause between two stages.
fn is_pause(stage: &Point) -> bool {
    stage.planned_per_s == Some(0.0)
}

/// The planned rate or number of clients of a stage.
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

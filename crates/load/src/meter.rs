//! What an engine asks and tells while it runs, and what it gives in the end.

use model::{
    Disturbance, EventKind, Failure, Interval, OperationResult, Outage, Point, ReadBack,
    RecordedOperation, Series, Trial, TrialEvent,
};
use stats::Time;
use std::time::Instant;
use workloads::kv::Written;

/// What the server has used and what others took so far, nanoseconds; counted from any time, but
/// always from the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// CPU time of the server's processes; `None` where it cannot be seen.
    pub server_cpu_ns: Option<u64>,
    /// What others took from the server, see [`Disturbance::server_ns`].
    pub taken_from_server_ns: Option<u64>,
    /// How long others ran on the generator's CPUs: at most that long its threads waited for them.
    pub others_on_generator_ns: u64,
    /// How long the hypervisor had the generator's CPUs.
    pub stolen_from_generator_ns: u64,
}

/// What a meter read, and when.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadAt {
    /// Nanoseconds of any clock.
    pub(crate) at_ns: u64,
    pub(crate) reading: Reading,
}

impl ReadAt {
    /// Reads now.
    pub(crate) fn now(meter: &mut dyn Meter, at_ns: u64) -> Self {
        Self { at_ns, reading: meter.read() }
    }

    /// CPU time of the server in a span of that length, of which this reading is the beginning and
    /// `later` the end. Readings come a little late: they count for as long as they were apart.
    pub(crate) fn server_cpu_ns(&self, later: &Self, length_ns: u64) -> Option<u64> {
        let apart_ns = later.at_ns.checked_sub(self.at_ns).filter(|ns| *ns > 0)?;
        let used_ns = difference(self.reading.server_cpu_ns, later.reading.server_cpu_ns)?;
        Some((used_ns as f64 * length_ns as f64 / apart_ns as f64) as u64)
    }

    /// What was taken until a later reading from the server, and from threads of the generator that
    /// waited so long for a CPU, in the mean of all.
    pub(crate) fn disturbance(&self, later: &Self, waited_ns: u64) -> Disturbance {
        let since =
            |get: fn(&Reading) -> u64| get(&later.reading).saturating_sub(get(&self.reading));
        let (before, after) = (self.reading, later.reading);
        let waited_ns = waited_ns.min(since(|r| r.others_on_generator_ns));
        Disturbance {
            generator_ns: waited_ns + since(|r| r.stolen_from_generator_ns),
            server_ns: difference(before.taken_from_server_ns, after.taken_from_server_ns),
        }
    }
}

fn difference(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    before.zip(after).map(|(before, after)| after.saturating_sub(before))
}

/// Reads what the server has used and others took; the engine asks at the start and the end of each
/// measurement, and of each of its stages.
pub trait Meter {
    /// Until now.
    fn read(&mut self) -> Reading;

    /// Told once when all data are filled in and nothing is measured yet.
    fn filled(&mut self) {}

    /// Told before each phase of blocking clients, while none of them does anything. An error fails
    /// the trial.
    fn before_phase(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// Of a server of which nothing can be seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unseen;

impl Meter for Unseen {
    fn read(&mut self) -> Reading {
        Reading::default()
    }
}

/// Told a few times a second while a phase runs.
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    /// Name of the phase.
    pub phase: &'a str,
    /// Operations per second since the last time.
    pub rate_per_s: f64,
    /// 99th percentile of the response time so far in this phase, which is the service time of
    /// closed clients; `None` before anything was done.
    pub response_ns_p99: Option<Time>,
    /// What was recorded since the last time; `None` where nothing is, as while filling.
    pub latest: Option<Latest>,
}

/// What was recorded since the last time; each field as in [`model::Recorded`].
#[derive(Clone, Debug)]
pub struct Latest {
    /// Nanoseconds since the phase's measurement began, until which all is told: on average over
    /// clients or threads, which hand over what they recorded each in its own time.
    pub at_ns: u64,
    /// The stage under way, from 0.
    pub stage: Option<u32>,
    /// Requests that are due each second.
    pub planned_per_s: Option<f64>,
    /// By operation.
    pub operations: Vec<RecordedOperation>,
}

/// What a trial's load gave.
#[derive(Debug, Default)]
pub struct Finished {
    /// The filling before them, as far as it came.
    pub fill: Option<PhaseRecord>,
    /// Phases measured to their end, of one that failed the stages that were over, and of one that
    /// was stopped what there was by then.
    pub phases: Vec<PhaseRecord>,
    /// What happened to the servers, and to which, where somebody watches them.
    pub events: Vec<(Instant, EventKind, String)>,
    /// What was recorded in the course of time, where the engine tells it.
    pub intervals: Vec<Interval>,
    /// What was written to a sample of keys, where the engine keeps that.
    pub written: Option<Written>,
    /// What the clients of an engine found when they read their last writes back.
    pub read_back: Option<ReadBack>,
    /// Why there are no more.
    pub failure: Option<Failure>,
    /// True when the user stopped it.
    pub interrupted: bool,
}

impl Finished {
    /// What was recorded of a phase.
    pub fn phase(&self, name: &str) -> Option<&PhaseRecord> {
        self.phases.iter().find(|phase| phase.series.phase == name)
    }

    /// Moves all points, series, outages and events to a trial that began at `zero`.
    pub fn record(&mut self, zero: Instant, trial: &mut Trial) {
        if let Some(mut fill) = self.fill.take() {
            fill.shift(zero);
            trial.fill = fill.points.pop();
            trial.series.push(fill.series);
        }
        for mut phase in self.phases.drain(..) {
            phase.shift(zero);
            trial.points.append(&mut phase.points);
            trial.series.push(phase.series);
            trial.outages.append(&mut phase.outages);
        }
        let at_ns = |at: Instant| at.saturating_duration_since(zero).as_nanos() as u64;
        let told = self.events.drain(..);
        let event = |(at, kind, subject)| TrialEvent { at_ns: at_ns(at), kind, subject };
        trial.events.extend(told.map(event));
        trial.events.sort_by_key(|event| event.at_ns);
    }
}

/// What was recorded of one phase. Times count from the start of its measurement until
/// [`Finished::record`].
#[derive(Clone, Debug, Default)]
pub struct PhaseRecord {
    /// When its measurement began; `None` where it never did.
    pub begun: Option<Instant>,
    /// One of a steady phase, one for each stage of a ladder.
    pub points: Vec<Point>,
    /// Operations in the course of time.
    pub series: Series,
    /// When servers answered nothing.
    pub outages: Vec<Outage>,
}

impl PhaseRecord {
    /// Lets all of its times count from `zero`.
    fn shift(&mut self, zero: Instant) {
        let begun = self.begun.unwrap_or(zero);
        let begun_ns = begun.saturating_duration_since(zero).as_nanos() as u64;
        self.series.begun_ns += begun_ns;
        self.points.iter_mut().for_each(|point| point.begun_ns += begun_ns);
        self.outages.iter_mut().for_each(|outage| outage.begun_ns += begun_ns);
    }

    /// Adds what followed on this without a pause worth telling, as one steady span.
    pub fn followed_by(&mut self, next: Self) {
        let Some((own, theirs)) = self.points.first_mut().zip(next.points.into_iter().next())
        else {
            return;
        };
        let length_ns = own.length_ns + theirs.length_ns;
        for operation in &mut own.operations {
            let of_next = theirs.operations.iter().find(|o| o.operation == operation.operation);
            if let Some(next) = of_next {
                operation.counts.merge(&next.counts);
                operation.service.merge(&next.service);
                operation.response.merge(&next.response);
            }
            let seconds = length_ns.max(1) as f64 / 1e9;
            operation.rate_per_s = operation.service.count() as f64 / seconds;
        }
        own.length_ns = length_ns;
        own.generator_cpu_ns += theirs.generator_cpu_ns;
        own.generator_run_delay_ns += theirs.generator_run_delay_ns;
        own.server_cpu_ns =
            own.server_cpu_ns.zip(theirs.server_cpu_ns).map(|(own, theirs)| own + theirs);
        self.series.done_per_interval.extend(next.series.done_per_interval);
    }

    /// All operations of a phase that was steady; `None` where nothing was done.
    pub fn whole(&self) -> Option<&OperationResult> {
        self.points.first().filter(|point| point.stage.is_none())?.whole()
    }
}

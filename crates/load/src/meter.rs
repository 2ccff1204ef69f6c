//! The interface between an engine and its caller: meter readings, progress and results.

use model::{
    Disturbance, EventKind, Failure, OperationResult, Outage, Point, ReadBack, RecordedOperation,
    Series, Trial, TrialEvent,
};
use stats::Time;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use workloads::kv::Written;

/// CPU time used by the server and taken by other processes so far, nanoseconds. Each field counts
/// from an arbitrary but fixed point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// CPU time of the server's processes; `None` if it cannot be read.
    pub server_cpu_ns: Option<u64>,
    /// Time taken from the server, see [`Disturbance::server_ns`].
    pub taken_from_server_ns: Option<u64>,
    /// CPU time of other processes on the generator's CPUs: an upper bound for how long its threads
    /// waited for them.
    pub other_processes_on_generator_ns: u64,
    /// CPU time there of other processes that offer parts of the same load.
    pub siblings_on_generator_ns: u64,
    /// Time that the hypervisor took from the generator's CPUs.
    pub stolen_from_generator_ns: u64,
    /// Time for which the generator was stopped, frozen or throttled.
    pub paused_ns: u64,
}

/// A meter reading with its time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadAt {
    /// Nanoseconds of any clock.
    pub(crate) at_ns: u64,
    pub(crate) reading: Reading,
}

impl ReadAt {
    /// Takes a reading now.
    pub(crate) fn now(meter: &mut dyn Meter, at_ns: u64) -> Self {
        Self { at_ns, reading: meter.read() }
    }

    /// CPU time of the server in a span of `length_ns` from this reading to `later`. Readings come
    /// slightly late, so the result is scaled from the time between them to the span.
    pub(crate) fn server_cpu_ns(&self, later: &Self, length_ns: u64) -> Option<u64> {
        let elapsed_ns = later.at_ns.checked_sub(self.at_ns).filter(|ns| *ns > 0)?;
        let used_ns = difference(self.reading.server_cpu_ns, later.reading.server_cpu_ns)?;
        Some((used_ns as f64 * length_ns as f64 / elapsed_ns as f64) as u64)
    }

    /// Time taken between this reading and `later` from the server, and from the generator, whose
    /// threads waited `waited_ns` each for a CPU on average. They waited for others, and for
    /// processes of the same load, in proportion to the CPU time of these.
    pub(crate) fn disturbance(&self, later: &Self, waited_ns: u64) -> Disturbance {
        let since =
            |get: fn(&Reading) -> u64| get(&later.reading).saturating_sub(get(&self.reading));
        let (before, after) = (self.reading, later.reading);
        let others_ns = since(|r| r.other_processes_on_generator_ns);
        let all_ns = others_ns + since(|r| r.siblings_on_generator_ns);
        let for_others_ns = waited_ns as f64 * others_ns as f64 / all_ns.max(1) as f64;
        let waited_ns = (for_others_ns as u64).min(others_ns);
        Disturbance {
            generator_ns: waited_ns + since(|r| r.stolen_from_generator_ns),
            server_ns: difference(before.taken_from_server_ns, after.taken_from_server_ns),
            paused_ns: since(|r| r.paused_ns),
        }
    }
}

fn difference(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    before.zip(after).map(|(before, after)| after.saturating_sub(before))
}

/// Reads CPU times of the server and of other processes. The engine takes a reading at the start
/// and the end of each measurement and of each of its stages.
pub trait Meter {
    /// Totals up to now.
    fn read(&mut self) -> Reading;

    /// Called once all clients of a load are connected, before its first request. Waits for the
    /// start of the load, at most until `stop` is set, and returns its time.
    fn begins(&mut self, _stop: &AtomicBool) -> Instant {
        Instant::now()
    }

    /// Called once after the fill, before anything is measured.
    fn filled(&mut self) {}

    /// Called a few times a second while the store is filled or measured. An error ends the load.
    fn check(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Called before each phase of blocking clients, while all of them are idle. An error fails the
    /// trial.
    fn before_phase(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// Meter for a server that cannot be observed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unmetered;

impl Meter for Unmetered {
    fn read(&mut self) -> Reading {
        Reading::default()
    }
}

/// Reported a few times a second while a phase runs.
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    /// Name of the phase.
    pub phase: &'a str,
    /// Operations per second since the previous report.
    pub rate_per_s: f64,
    /// 99th percentile of the response time so far in this phase; for closed clients that is the
    /// service time. `None` before the first operation.
    pub response_ns_p99: Option<Time>,
    /// Records since the previous report; `None` where nothing is recorded, as during the fill.
    pub latest: Option<Latest>,
}

/// Records since the previous report; each field as in [`model::Recorded`].
#[derive(Clone, Debug)]
pub struct Latest {
    /// How far into the phase's measurement the records reach, nanoseconds: the mean over clients
    /// or threads, which hand over their records independently.
    pub at_ns: u64,
    /// The current stage, from 0.
    pub stage: Option<u32>,
    /// Requests due per second.
    pub planned_per_s: Option<f64>,
    /// By operation.
    pub operations: Vec<RecordedOperation>,
    /// Whole operations of the phase, each of one or several calls.
    pub whole: Box<RecordedOperation>,
}

/// Result of a trial's load.
#[derive(Debug, Default)]
pub struct Finished {
    /// The fill before the phases, complete or not.
    pub fill: Option<PhaseRecord>,
    /// Complete phases. A failed phase contains the stages that had ended, an interrupted one
    /// everything recorded until then, as does a steady one with a point that has a failure.
    pub phases: Vec<PhaseRecord>,
    /// Server events with the affected server, if a watcher is running.
    pub events: Vec<(Instant, EventKind, String)>,
    /// Writes to a sample of keys, if the engine keeps them.
    pub written: Option<Written>,
    /// Result of reading the clients' last writes back.
    pub read_back: Option<ReadBack>,
    /// Why the remaining phases are missing.
    pub failure: Option<Failure>,
    /// True if the user stopped the trial.
    pub interrupted: bool,
}

impl Finished {
    /// Records of the phase named `name`.
    pub fn phase(&self, name: &str) -> Option<&PhaseRecord> {
        self.phases.iter().find(|phase| phase.series.phase == name)
    }

    /// Moves all points, series, outages and events to a trial that started at `zero`.
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
        let events = self.events.drain(..);
        let event = |(at, kind, subject)| TrialEvent { at_ns: at_ns(at), kind, subject };
        trial.events.extend(events.map(event));
        trial.events.sort_by_key(|event| event.at_ns);
    }
}

/// Records of one phase. Times count from the start of its measurement until [`Finished::record`].
#[derive(Clone, Debug, Default)]
pub struct PhaseRecord {
    /// Start of its measurement; `None` if there was none.
    pub begun: Option<Instant>,
    /// A single point for a steady phase, one per stage for a ladder.
    pub points: Vec<Point>,
    /// Operations over time.
    pub series: Series,
    /// Periods in which servers answered nothing.
    pub outages: Vec<Outage>,
}

impl PhaseRecord {
    /// Makes all times count from `zero`.
    fn shift(&mut self, zero: Instant) {
        let begun = self.begun.unwrap_or(zero);
        let begun_ns = begun.saturating_duration_since(zero).as_nanos() as u64;
        self.series.begun_ns += begun_ns;
        self.points.iter_mut().for_each(|point| point.begun_ns += begun_ns);
        self.outages.iter_mut().for_each(|outage| outage.begun_ns += begun_ns);
    }

    /// Appends the stage that followed.
    pub(crate) fn add_stage(&mut self, next: Self) {
        let later =
            next.begun.zip(self.begun).map(|(next, own)| next.saturating_duration_since(own));
        let from_ns = later.map_or(0, |later| later.as_nanos() as u64);
        let at = |point: Point| Point { begun_ns: point.begun_ns + from_ns, ..point };
        self.points.extend(next.points.into_iter().map(at));
        let first = (from_ns / self.series.interval_ns.max(1)) as usize;
        self.series.add(first, &next.series);
    }

    /// Appends `next`, which followed almost without a pause, as part of the same steady span.
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
        self.series.add(self.series.done_per_interval.len(), &next.series);
    }

    /// All operations of a steady phase together; `None` if there were none.
    pub fn whole(&self) -> Option<&OperationResult> {
        self.points.first().filter(|point| point.stage.is_none())?.whole()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_divided_between_others_and_processes_of_the_same_load() {
        let taken = |others, siblings, waited_ns| {
            let reading = Reading {
                other_processes_on_generator_ns: others,
                siblings_on_generator_ns: siblings,
                ..Reading::default()
            };
            let (before, after) = (ReadAt::default(), ReadAt { at_ns: 1_000, reading });
            before.disturbance(&after, waited_ns).generator_ns
        };
        assert_eq!(taken(100, 0, 60), 60);
        // Part of the wait is for threads of the generator itself.
        assert_eq!(taken(100, 0, 250), 100);
        assert_eq!(taken(100, 300, 200), 50);
        assert_eq!(taken(0, 300, 200), 0);
        assert_eq!(taken(0, 0, 200), 0);
    }
}

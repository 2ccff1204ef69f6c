//! What an engine asks and tells while it runs, and what it gives in the end.

use model::{Failure, Interval, PhaseResult, RecordedOperation};
use std::time::Instant;

/// Reads what the server has used; the engine asks at the start and the end of each measurement.
pub trait Meter {
    /// CPU time of the server's process so far, nanoseconds; `None` where it cannot be seen.
    fn server_cpu_ns(&mut self) -> Option<u64>;

    /// Told once when all data are filled in and nothing is measured yet.
    fn filled(&mut self) {}

    /// Told before each phase of blocking clients, while none of them does anything. An error fails
    /// the trial.
    fn before_phase(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// Told a few times a second while a phase runs.
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    /// Name of the phase.
    pub phase: &'a str,
    /// Operations per second since the last time.
    pub rate_per_s: f64,
    /// 99th percentile of the service time so far in this phase.
    pub service_ns_p99: u64,
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
    /// Phases measured to their end, and of one that failed the stages that were over.
    pub phases: Vec<PhaseResult>,
    /// When the measurement of each of them began.
    pub begun: Vec<Instant>,
    /// What was recorded in the course of time, where the engine tells it.
    pub intervals: Vec<Interval>,
    /// Why there are no more.
    pub failure: Option<Failure>,
    /// True when the user stopped it.
    pub interrupted: bool,
}

impl Finished {
    /// Sets [`PhaseResult::begun_ns`] of all phases, counted from `zero`.
    pub fn count_from(&mut self, zero: Instant) {
        for (phase, begun) in self.phases.iter_mut().zip(&self.begun) {
            phase.begun_ns = begun.saturating_duration_since(zero).as_nanos() as u64;
        }
    }
}

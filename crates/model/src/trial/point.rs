//! What was measured in one span under one offered load.

use serde::{Deserialize, Serialize};
use stats::search::Step;

use super::counts::Counts;
use super::disturbance::Disturbance;
use super::failure::Failure;
use super::operation::{OperationResult, Restored};
use super::silence::Silence;

/// One span under one offered load: a steady phase, a stage of a ladder without its beginning, in
/// which the store settles, or a probe of a search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Name of the phase that it is, or is a stage of.
    pub phase: String,
    /// Number of the stage or of the probe, from 0; `None` where the phase was steady.
    pub stage: Option<u32>,
    /// What a search asked for in it; `None` elsewhere.
    pub probe: Option<Step>,
    /// When its span began, nanoseconds since the trial began: the clock of
    /// [`Sample::at_ns`](crate::Sample::at_ns).
    pub begun_ns: u64,
    /// How long it lasted, nanoseconds; of a steady phase from the first client's start to the last
    /// client's end.
    pub length_ns: u64,
    /// Requests per second that were planned, in the mean; `None` under a closed load.
    pub planned_per_s: Option<f64>,
    /// Clients at work, in the mean; of an open load those that share it.
    pub clients: u32,
    /// What was due in it under an open load, what was answered in it under a closed one. A point
    /// of several operations has one more, the last, named like the phase, for all.
    pub operations: Vec<OperationResult>,
    /// Requests that were due in it and never sent, because the time-out had passed.
    pub unsent: u64,
    /// How operations of the warm-up ended, which are in no other figure. Of a stage these are all
    /// around its span that are no other's.
    pub warmup: Counts,
    /// CPU time of the client threads.
    pub generator_cpu_ns: u64,
    /// Time in which client threads were ready to run and waited for a CPU, nanoseconds.
    pub generator_run_delay_ns: u64,
    /// CPU time of the server's processes; `None` where there are none, or not ours to see.
    pub server_cpu_ns: Option<u64>,
    /// What others took of the CPUs meanwhile.
    pub disturbance: Disturbance,
    /// Share of the clients' time spent outside of operations: drawing values, checking.
    pub own_share: f64,
    /// Where clients saved again what cleans had removed, the times of each that the rate is made
    /// of (see [`Restored::rate_per_s`]). Empty elsewhere.
    pub restored: Vec<Restored>,
    /// What was due in each interval of a load with limits; `None` without any.
    pub due: Option<Due>,
    /// When an operation was not answered, of a steady phase of keys and values: for each operation
    /// by time.
    pub silences: Vec<Silence>,
    /// Why it ended before its time, as where the store broke; all else is what there was up to
    /// then.
    pub failure: Option<Failure>,
}

impl Point {
    /// All operations together: the last, or the only one. `None` where nothing was done.
    pub fn whole(&self) -> Option<&OperationResult> {
        self.operations.last()
    }

    /// One operation by its name.
    pub fn operation(&self, name: &str) -> Option<&OperationResult> {
        self.operations.iter().find(|o| o.operation == name)
    }
}

/// What was due in the course of an open load, and what of it was late.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Due {
    /// Requests due in each interval of [`Slowest::interval_ns`](super::Slowest::interval_ns) from
    /// the start of the point, as far as they were sent.
    pub due_per_interval: Vec<u64>,
    /// Those of them that were beyond each limit, which is there once.
    pub beyond: Vec<Beyond>,
    /// Requests that the generator sent late by itself, a client being free: by more than half of
    /// the strictest limit.
    pub late: u64,
}

impl Due {
    /// Requests beyond a limit; `None` where it was none of those counted.
    pub fn beyond(&self, limit_ns: u64) -> Option<&Beyond> {
        self.beyond.iter().find(|beyond| beyond.limit_ns == limit_ns)
    }
}

/// Requests beyond one limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beyond {
    /// The limit: response time in nanoseconds; the largest number for requests that failed.
    pub limit_ns: u64,
    /// Requests beyond it, by the interval in which they were due; a failed one is beyond all.
    pub over_per_interval: Vec<u64>,
}

//! Result of one measured run of one cell: a line of a record's `trials.jsonl`.

use serde::{Deserialize, Serialize};

use crate::memory::{Emptied, MemoryUse};
use crate::read_back::ReadBack;

mod counts;
mod disturbance;
mod disturbers;
mod fact;
mod failure;
mod happened;
mod merging;
mod operation;
mod outage;
mod point;
mod series;
mod silence;
mod slowest;
mod times;

pub use counts::Counts;
pub(crate) use counts::is_zero;
pub use disturbance::Disturbance;
pub use disturbers::{Disturber, Disturbers};
pub use fact::Fact;
pub use failure::{ErrorClass, Failure};
pub use happened::{BackgroundWrite, EventKind, TrialEvent};
pub use operation::{OperationResult, Restored};
pub use outage::Outage;
pub use point::{Beyond, Contributor, Due, Point};
pub use series::Series;
pub use silence::Silence;
pub use slowest::Slowest;

/// Disturbances of a trial, from the fill to the end of its last phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Share of all CPU time that the hypervisor gave to other virtual machines.
    pub steal_share: f64,
    /// Share of wall time in which some task waited for a CPU (PSI); `None` without PSI.
    pub psi_cpu_some_share: Option<f64>,
    /// Share of wall time in which some task waited for the disk (PSI).
    pub psi_io_some_share: Option<f64>,
    /// Share of wall time in which some task waited for memory (PSI).
    pub psi_memory_some_share: Option<f64>,
    /// CPU time of processes other than generator and server, as a share of all CPU time.
    pub other_cpu_share: f64,
    /// Share of the clients' time in which they were runnable but waited for a CPU.
    pub run_delay_share: f64,
    /// Longest oversleep of a thread that repeatedly sleeps 1 to 4 ms.
    pub hiccup_ns_max: u64,
    /// 99th percentile of the same.
    pub hiccup_ns_p99: u64,
    /// Processes with the most CPU time, except generator and server, in descending order.
    pub busiest: Vec<Busy>,
    /// Other processes on the CPUs of generator and servers; `None` if unknown.
    pub disturbers: Option<Disturbers>,
}

/// CPU time of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Busy {
    /// Name of its program or kernel thread in the kernel, at most 15 bytes.
    pub name: String,
    /// CPU time, nanoseconds, in clock ticks.
    pub cpu_ns: u64,
}

/// One measured run of one cell in one block: fresh server, fresh data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Block, from 0.
    pub block: u32,
    /// Position within the block's random order, from 0.
    pub position: u32,
    /// Id of the cell.
    pub cell: String,
    /// Wall-clock start, milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// Duration including start and stop of the server, nanoseconds.
    pub took_ns: u64,
    /// Product and version as the server reports it, for example `Redis 7.0.15`.
    pub version: Option<String>,
    /// How the page cache was emptied before each phase; `None` if it was not.
    pub emptied: Option<Emptied>,
    /// Memory used under the limit; `None` without a limit.
    pub memory: Option<MemoryUse>,
    /// Check that the store kept what it acknowledged; `None` if the writes do not determine the
    /// values.
    pub read_back: Option<ReadBack>,
    /// Step of the wall clock during the trial, milliseconds, negative if set back; `None` if it
    /// was at most a second. Affects times of day, not durations.
    pub clock_step_ms: Option<i64>,
    /// Why its data could not be removed from an existing store, and what to remove; `None` if
    /// nothing is left. Does not affect the results.
    pub not_removed: Option<Failure>,
    /// The fill before the first phase of a key-value workload; `None` without a fill.
    pub fill: Option<Point>,
    /// Results in order of time: one point per steady phase, per stage of a ramp, or per probe of a
    /// search. A failed trial has those that were complete.
    pub points: Vec<Point>,
    /// Completed operations over time, by phase; for a search only the fill.
    pub series: Vec<Series>,
    /// Periods without replies from a server, by time.
    pub outages: Vec<Outage>,
    /// Events of its stores, by time.
    pub events: Vec<TrialEvent>,
    /// Statistics of its stores and their host.
    pub facts: Vec<Fact>,
    /// Disturbances.
    pub noise: Noise,
    /// Why it has no complete result.
    pub failure: Option<Failure>,
    /// Why earlier attempts were lost; empty without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_before: Vec<String>,
}

impl Trial {
    /// True if both are of the same cell in the same block.
    pub fn repeats(&self, other: &Self) -> bool {
        (self.block, &self.cell) == (other.block, &other.cell)
    }

    /// True if it says nothing of the store, because a machine that took part was lost. A resumed
    /// run measures it again.
    pub fn is_lost(&self) -> bool {
        self.failure.as_ref().is_some_and(|failure| failure.class == ErrorClass::Lost)
    }

    /// The next attempt at a trial that was lost, from its start.
    #[must_use]
    pub fn again(self, started_unix_ms: u64) -> Self {
        let mut lost_before = self.lost_before;
        lost_before.extend(self.failure.map(|failure| failure.message));
        let (block, position, cell) = (self.block, self.position, self.cell);
        Self { block, position, cell, started_unix_ms, lost_before, ..Self::default() }
    }

    /// Adds a trial that has ended, in place of an earlier attempt that was lost.
    pub fn add(trials: &mut Vec<Self>, trial: Self) {
        trials.retain(|known| !(known.is_lost() && known.repeats(&trial)));
        trials.push(trial);
    }

    /// Adds a part to a trial in progress: the new points, with the current state of everything
    /// else.
    pub fn merge_part(trials: &mut Vec<Self>, mut part: Self) {
        if let Some(known) = trials.iter_mut().find(|trial| trial.repeats(&part)) {
            part.points.splice(..0, std::mem::take(&mut known.points));
            part.outages.splice(..0, std::mem::take(&mut known.outages));
            part.events.splice(..0, std::mem::take(&mut known.events));
            *known = part;
        } else {
            trials.push(part);
        }
    }

    /// The point of a steady phase; `None` if there is none.
    pub fn point(&self, phase: &str) -> Option<&Point> {
        self.points.iter().find(|point| point.phase == phase && point.stage.is_none())
    }

    /// A statistic of its stores by name.
    pub fn fact(&self, name: &str) -> Option<f64> {
        self.facts.iter().find(|fact| fact.name == name).map(|fact| fact.value)
    }

    /// Completed operations over time in a phase.
    pub fn series(&self, phase: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.phase == phase)
    }
}

/// Latencies of one operation in one interval of a phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// Name of the phase.
    pub phase: String,
    /// Name of the operation.
    pub operation: String,
    /// Kind of latency: `service`, or `response` for an open load.
    pub time: &'static str,
    /// Start, milliseconds since 1970.
    pub begun_unix_ms: u64,
    /// Length, nanoseconds.
    pub length_ns: u64,
    /// Longest latency, nanoseconds.
    pub max_ns: u64,
    /// All latencies, encoded by [`Histogram::encode`](stats::Histogram::encode) to save memory.
    pub encoded: String,
}

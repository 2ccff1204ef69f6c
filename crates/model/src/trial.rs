//! What one measured run of one cell gave: a line of a record's `trials.jsonl`.

use serde::{Deserialize, Serialize};

use crate::memory::{Emptied, MemoryUse};
use crate::read_back::ReadBack;

mod counts;
mod disturbance;
mod disturbers;
mod fact;
mod failure;
mod happened;
mod operation;
mod outage;
mod point;
mod series;
mod silence;
mod slowest;
mod times;

pub use counts::Counts;
pub use disturbance::Disturbance;
pub use disturbers::{Disturber, Disturbers};
pub use fact::Fact;
pub use failure::{ErrorClass, Failure};
pub use happened::{EventKind, TrialEvent};
pub use operation::{OperationResult, Restored};
pub use outage::Outage;
pub use point::{Beyond, Due, Point};
pub use series::Series;
pub use silence::Silence;
pub use slowest::Slowest;

/// What disturbed a trial, from the filling to the end of its last phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Share of all CPU time that the hypervisor gave to others.
    pub steal_share: f64,
    /// Share of wall time in which some task waited for a CPU (PSI); `None` without PSI.
    pub psi_cpu_some_share: Option<f64>,
    /// Share of wall time in which some task waited for the disk (PSI).
    pub psi_io_some_share: Option<f64>,
    /// Share of wall time in which some task waited for memory (PSI).
    pub psi_memory_some_share: Option<f64>,
    /// CPU time of processes other than generator and server, as a share of all CPU time.
    pub other_cpu_share: f64,
    /// Share of the clients' time spent ready but waiting for a CPU.
    pub run_delay_share: f64,
    /// Longest oversleep of a thread that sleeps 1 to 4 ms over and over.
    pub hiccup_ns_max: u64,
    /// 99th percentile of the same.
    pub hiccup_ns_p99: u64,
    /// The processes other than generator and server that used most CPU time, most first.
    pub busiest: Vec<Busy>,
    /// Who else ran on the CPUs of generator and servers; `None` where the kernel does not tell.
    pub disturbers: Option<Disturbers>,
}

/// CPU time of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Busy {
    /// Its program as the kernel names it, at most 15 bytes; a kernel thread's own name.
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
    /// Duration with start and stop of the server.
    pub took_ns: u64,
    /// Product and version as the server reports it, for example `Redis 7.0.15`.
    pub version: Option<String>,
    /// How the page cache was emptied before each phase; `None` where it stayed as it was.
    pub emptied: Option<Emptied>,
    /// What was taken of the memory limit; `None` where there was none.
    pub memory: Option<MemoryUse>,
    /// What the store still held of what it acknowledged; `None` where that does not follow from
    /// what clients wrote.
    pub read_back: Option<ReadBack>,
    /// By how many milliseconds the wall clock was set while it ran, negative for back; `None`
    /// where it was not by more than a second. Times of day of the trial are off by that, durations
    /// are not.
    pub clock_step_ms: Option<i64>,
    /// Why what it wrote into a store that was there before could not be removed, and what to
    /// remove; `None` where nothing is left. What was measured before stands.
    pub not_removed: Option<Failure>,
    /// The filling before the first phase, of keys and values; `None` where nothing was filled in.
    pub fill: Option<Point>,
    /// What was measured, in the order of time: a steady phase is one point, a ladder one for each
    /// of its stages, a search one for each probe. Of a trial that failed, those that were over
    /// before.
    pub points: Vec<Point>,
    /// What was finished in the course of time, by phase; of a search only its fill.
    pub series: Vec<Series>,
    /// When servers answered nothing, by time.
    pub outages: Vec<Outage>,
    /// What happened to its stores, by time.
    pub events: Vec<TrialEvent>,
    /// Numbers about its stores and their host.
    pub facts: Vec<Fact>,
    /// What disturbed it.
    pub noise: Noise,
    /// Why it has no (complete) result.
    pub failure: Option<Failure>,
}

impl Trial {
    /// True where both are of the same cell in the same block.
    pub fn repeats(&self, other: &Self) -> bool {
        (self.block, &self.cell) == (other.block, &other.cell)
    }

    /// Adds what came to a trial under way: a part with the points since, and all else as it then
    /// stood.
    pub fn go_on(trials: &mut Vec<Self>, mut part: Self) {
        if let Some(known) = trials.iter_mut().find(|trial| trial.repeats(&part)) {
            part.points.splice(..0, std::mem::take(&mut known.points));
            part.outages.splice(..0, std::mem::take(&mut known.outages));
            part.events.splice(..0, std::mem::take(&mut known.events));
            *known = part;
        } else {
            trials.push(part);
        }
    }

    /// The point that is a whole phase, which was steady; `None` where there is none.
    pub fn point(&self, phase: &str) -> Option<&Point> {
        self.points.iter().find(|point| point.phase == phase && point.stage.is_none())
    }

    /// A number about its stores by its name.
    pub fn fact(&self, name: &str) -> Option<f64> {
        self.facts.iter().find(|fact| fact.name == name).map(|fact| fact.value)
    }

    /// What was finished in the course of a phase.
    pub fn series(&self, phase: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.phase == phase)
    }
}

/// What was recorded of one operation's times in one interval of a phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// Name of the phase.
    pub phase: String,
    /// Name of the operation.
    pub operation: String,
    /// Which time: `service`, or `response` under an open load.
    pub time: &'static str,
    /// When it began, milliseconds since 1970.
    pub begun_unix_ms: u64,
    /// How long it was, nanoseconds.
    pub length_ns: u64,
    /// The longest time in it, nanoseconds.
    pub max_ns: u64,
    /// All times in it, as [`Histogram::encode`](stats::Histogram::encode) writes them: kept small,
    /// for there may be many.
    pub encoded: String,
}

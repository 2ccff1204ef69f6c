//! The only thing the runner speaks in. Progress display, archive and live page are sinks;
//! a record that is replayed feeds the same sinks.

use stats::{Histogram, Time};

use crate::record::{Header, Seal, TargetState};
use crate::saturation::Sample;
use crate::trial::{Counts, Interval, Trial};

/// Something that happened in a run.
#[derive(Clone, Debug)]
pub enum Event {
    /// The plan is made and the conditions are known; nothing was measured yet.
    RunStarted(Box<Header>),
    /// A target was checked; the cells of one that is unavailable are not run.
    TargetChecked(TargetState),
    /// A trial begins.
    TrialStarted {
        /// Block, from 0.
        block: u32,
        /// Id of the cell.
        cell: String,
        /// Share of the run that is done, 0 to 1, as far as it can be foreseen.
        done_share: f64,
        /// Nanoseconds that are left, as far as that can be foreseen.
        left_ns: u64,
    },
    /// A few times a second while a phase runs.
    Progress {
        /// Id of the cell.
        cell: String,
        /// Name of the phase.
        phase: String,
        /// Operations per second in the last interval.
        rate_per_s: f64,
        /// 99th percentile of the response time so far; `None` before anything was done.
        response_ns_p99: Option<Time>,
    },
    /// A point of a trial that goes on is over, as a probe of a search: the trial as it stands,
    /// with that point alone ([`Trial::go_on`]).
    PointEnded(Box<Trial>),
    /// A trial is over, measured or failed. All of its points are in it, those told before as well.
    TrialEnded(Box<Trial>),
    /// What the trial that just ended recorded in the course of time, where its engine tells.
    Intervals {
        /// Id of the cell.
        cell: String,
        /// In the order of time.
        intervals: Vec<Interval>,
    },
    /// What was recorded since the last time, a few times a second, where the engine tells.
    Recorded(Box<Recorded>),
    /// What server and generator used until now, ten times a second while a trial lasts.
    Sampled {
        /// Id of the cell.
        cell: String,
        /// The reading.
        sample: Box<Sample>,
    },
    /// All samples of the trial that just ended.
    Samples {
        /// Block of the trial, from 0.
        block: u32,
        /// Id of the cell.
        cell: String,
        /// In the order of time.
        samples: Vec<Sample>,
    },
    /// Something the user should know that stops nothing.
    Warning(String),
    /// The run is over.
    RunEnded(Seal),
}

/// What was recorded of a phase since it was told the last time.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Id of the cell.
    pub cell: String,
    /// Name of the phase.
    pub phase: String,
    /// Nanoseconds since the phase's measurement began, until which all is told: on average over
    /// clients or threads, which hand over what they recorded each in its own time.
    pub at_ns: u64,
    /// The stage that is under way, from 0; `None` where the load has none.
    pub stage: Option<u32>,
    /// Requests that are due each second now, of an open load; else `None`.
    pub planned_per_s: Option<f64>,
    /// By operation, those that happened; their sum is all that was done.
    pub operations: Vec<RecordedOperation>,
}

/// What was recorded of one operation.
#[derive(Clone, Debug)]
pub struct RecordedOperation {
    /// Name of the operation.
    pub operation: String,
    /// How they ended.
    pub counts: Counts,
    /// Done − sent.
    pub service: Histogram,
    /// Done − intended start, of an open load; else empty.
    pub response: Histogram,
}

/// Why a sink could not take an event.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SinkError(pub String);

/// Someone who listens to a run. A sink that fails is warned about and dropped; the run goes on.
pub trait Sink {
    /// Name for the warning, for example `record`.
    fn name(&self) -> &'static str;

    /// Takes one event; called from one thread, in order.
    fn event(&mut self, event: &Event) -> Result<(), SinkError>;
}

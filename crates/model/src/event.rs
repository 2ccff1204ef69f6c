//! Events of a run, the runner's only output. Progress display, archive and live page are sinks; a
//! replayed record feeds the same sinks.

use serde::{Deserialize, Serialize};
use stats::{Histogram, Time};

use crate::record::{Header, Seal, TargetState};
use crate::saturation::Sample;
use crate::trial::{Counts, Interval, Trial};

/// An event of a run.
#[derive(Clone, Debug)]
pub enum Event {
    /// The run starts: plan and conditions are known.
    RunStarted(Box<Header>),
    /// A target was checked; cells of an unavailable one do not run.
    TargetChecked(TargetState),
    /// A trial starts.
    TrialStarted {
        /// Block, from 0.
        block: u32,
        /// Id of the cell.
        cell: String,
        /// Estimated completed share of the run, 0 to 1.
        done_share: f64,
        /// Estimated remaining time, nanoseconds.
        left_ns: u64,
    },
    /// Progress of a phase, several times per second.
    Progress {
        /// Id of the cell.
        cell: String,
        /// Name of the phase.
        phase: String,
        /// Operations per second in the last interval.
        rate_per_s: f64,
        /// 99th percentile of the response time so far; `None` before the first operation.
        response_ns_p99: Option<Time>,
    },
    /// A point of a continuing trial is complete, such as a probe of a search: the trial's current
    /// state with only that point ([`Trial::merge_part`]).
    PointEnded(Box<Trial>),
    /// A trial is over, measured or failed. It has all points, including those already reported.
    TrialEnded(Box<Trial>),
    /// Latencies over time of the trial that just ended, if its engine records them.
    Intervals {
        /// Id of the cell.
        cell: String,
        /// In chronological order.
        intervals: Vec<Interval>,
    },
    /// New results, several times per second, if the engine reports them.
    Recorded(Box<Recorded>),
    /// Resource usage of server and generator, ten times per second during a trial.
    Sampled {
        /// Id of the cell.
        cell: String,
        /// The sample.
        sample: Box<Sample>,
    },
    /// All samples of the trial that just ended.
    Samples {
        /// Block of the trial, from 0.
        block: u32,
        /// Id of the cell.
        cell: String,
        /// In chronological order.
        samples: Vec<Sample>,
    },
    /// A warning; the run continues.
    Warning(String),
    /// The run is over.
    RunEnded(Seal),
}

/// Results of a phase since the last report.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Id of the cell.
    pub cell: String,
    /// Name of the phase.
    pub phase: String,
    /// Time since the start of the phase's measurement up to which results are complete,
    /// nanoseconds: the mean over clients or threads, which hand over their results at different
    /// times.
    pub at_ns: u64,
    /// The current stage, from 0; `None` if the load has none.
    pub stage: Option<u32>,
    /// The current planned rate of an open load, requests per second; otherwise `None`.
    pub planned_per_s: Option<f64>,
    /// Results by operation; their sum is the total.
    pub operations: Vec<RecordedOperation>,
}

/// Results of one operation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecordedOperation {
    /// Name of the operation.
    pub operation: String,
    /// Outcomes.
    pub counts: Counts,
    /// Service time: done − sent.
    pub service: Histogram,
    /// Response time: done − intended start; empty for a closed load.
    pub response: Histogram,
}

impl RecordedOperation {
    /// The response time, which is the service time for a closed load.
    pub fn response(&self) -> &Histogram {
        if self.response.is_empty() { &self.service } else { &self.response }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.counts.merge(&other.counts);
        self.service.merge(&other.service);
        self.response.merge(&other.response);
    }

    /// Adds `theirs` to `own`, operation by operation.
    pub fn merge_all(own: &mut Vec<Self>, theirs: &[Self]) {
        for operation in theirs {
            match own.iter_mut().find(|o| o.operation == operation.operation) {
                Some(known) => known.merge(operation),
                None => own.push(operation.clone()),
            }
        }
    }
}

/// Error of a sink.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SinkError(pub String);

/// An event listener. A failing sink is dropped with a warning, and the run continues.
pub trait Sink {
    /// Name for the warning, for example `record`.
    fn name(&self) -> &'static str;

    /// Takes one event; called from one thread, in order.
    fn event(&mut self, event: &Event) -> Result<(), SinkError>;
}

//! Messages between driver and worker.

use load::Step;
use load::wire::Offer;
use model::{Condition, Failure, Kv, Outage, Phase, Point, ReadBack, RecordedOperation, Series};
use serde::{Deserialize, Serialize};
use workloads::kv::Written;

use super::endpoint::SentEndpoint;
use crate::opening::{Opening, Those};
use crate::request_form::RequestForm;

/// Version of the protocol.
pub(super) const PROTOCOL: u32 = 1;

/// Message from the driver to a worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ToWorker {
    /// The worker has joined.
    Welcome {
        /// Its number, from 1.
        number: u32,
    },
    /// The worker may not join, or must end.
    Refused { why: String },
    /// A load to prepare: connect, then report [`ToDriver::Ready`].
    Load { job: Box<SentJob> },
    /// The start of the prepared load.
    Start {
        /// Nanoseconds on the worker's clock.
        at_ns: u64,
    },
    /// Ends the current load early.
    Stop,
    /// Disconnects the clients that were opened.
    Close,
    /// No more loads follow.
    Goodbye,
}

/// Message from a worker to the driver.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ToDriver {
    /// First message.
    Hello(Hello),
    /// All clients of a load are connected, or connecting failed, which the end reports.
    Ready { job: u64 },
    /// Results since the last report, once a second.
    Progress { progress: Box<SentProgress> },
    /// The worker ends, with the reason.
    Leaves { why: String },
    /// The load is over.
    Ended { ended: Box<SentEnd> },
}

/// What a worker says of itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    /// [`PROTOCOL`].
    pub(super) protocol: u32,
    /// Version of its program.
    pub(super) version: String,
    /// Secret of the fleet's token.
    pub(super) secret: String,
    /// Host name.
    pub(super) host: String,
    /// Random, unique per process.
    pub(super) id: u64,
    /// Process id on its machine.
    pub(super) pid: u32,
    /// CPUs that its threads may use.
    pub(super) cpus: Vec<usize>,
    /// Facts about its machine, such as the CPU time of a request if it is calibrated.
    pub(super) machine: Vec<Condition>,
}

/// One load on one worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SentJob {
    /// Number of the job, unique within the fleet.
    pub(super) number: u64,
    pub(super) load: SentLoad,
    /// Process ids of workers of the fleet that share CPUs with this one.
    pub(super) siblings: Vec<u32>,
}

/// What one worker does.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SentLoad {
    /// Requests of event loops.
    Requests { endpoint: Box<SentEndpoint>, requests: Box<Requests>, offer: Box<Offer> },
    /// Something that blocking clients do, which stay connected until [`ToWorker::Close`].
    Clients(SentTask),
}

/// What blocking clients do at one time.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SentTask {
    /// Connects.
    Open(Box<Opening<SentEndpoint>>, Those),
    Fill,
    /// Runs a step, with the worker's part of its arrivals.
    Step(Box<Step>),
    /// Reads the last writes back.
    ReadBack,
}

/// The requests of a load.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Requests {
    /// Of a key-value cell.
    Cell {
        /// Prefix of every key.
        prefix: String,
        kv: Box<Kv>,
        seed: u64,
        what: What,
    },
    /// All alike.
    Alike(RequestForm),
}

impl Requests {
    /// False for a fill, whose results are not reported while it runs.
    pub(super) fn are_measured(&self) -> bool {
        !matches!(self, Self::Cell { what: What::Fill { .. }, .. })
    }
}

/// Keys to write, or a phase to measure.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum What {
    /// Writes this many keys from `first` on, in order.
    Fill { first: u64, keys: u64 },
    /// Runs the operations of a phase.
    Phase(Box<Phase>),
}

/// Results since the last report.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SentProgress {
    pub(super) job: u64,
    pub(super) at_ns: u64,
    pub(super) stage: Option<u32>,
    pub(super) operations: Vec<RecordedOperation>,
    pub(super) whole: RecordedOperation,
}

/// Results of a load.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct SentEnd {
    pub(super) job: u64,
    /// How much later than planned it started, nanoseconds.
    pub(super) late_ns: u64,
    /// From the zero of the times of `written` to the start of the load, nanoseconds.
    pub(super) before_start_ns: u64,
    pub(super) points: Vec<Point>,
    pub(super) series: Series,
    pub(super) outages: Vec<Outage>,
    pub(super) written: Option<Written>,
    pub(super) read_back: Option<ReadBack>,
    pub(super) failure: Option<Failure>,
}

//! Messages between a driver and a worker that lends its machine for private servers.

use model::{Condition, Failure, PlannedTarget, Product};
use rig::FreeSpace;
use serde::{Deserialize, Serialize};

use super::endpoint::SentEndpoint;

/// Question or answer with the number of the question: an answer that comes too late must not be
/// taken for that of the next question.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Numbered<M> {
    pub(super) number: u64,
    pub(super) message: M,
}

/// Question of the driver; each has one answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ToRig {
    /// First message.
    Hello { version: String, secret: String },
    /// Starts servers.
    Start(Box<Asked>),
    /// Reads the meters.
    Read,
    /// Stops the servers of a start.
    Stop { number: u64 },
    /// The run is over. It has no answer.
    Goodbye,
}

/// Servers to start.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Asked {
    /// Number of the start.
    pub(super) number: u64,
    pub(super) product: Product,
    pub(super) target: PlannedTarget,
    /// CPUs to start them on, the first of those that the machine lends.
    pub(super) cpus: usize,
}

/// Answer to a question.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FromRig {
    /// To [`ToRig::Hello`].
    Lent(Lent),
    /// To [`ToRig::Start`].
    Started { endpoint: SentEndpoint },
    /// To [`ToRig::Read`].
    Reading(RigReading),
    /// To [`ToRig::Stop`].
    Stopped,
    /// To any question.
    Failed(Failure),
}

/// The machine that is lent.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Lent {
    /// Its host name.
    pub(super) host: String,
    /// Facts about it.
    pub(super) conditions: Vec<Condition>,
    /// CPUs on which servers may run.
    pub(super) cpus: Vec<usize>,
    /// Its free memory and disk.
    pub(super) free: FreeSpace,
}

/// Meters of the running servers, totals since an arbitrary point.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct RigReading {
    /// CPU time of their processes, nanoseconds.
    pub(crate) cpu_ns: Option<u64>,
    /// CPU time that others took from them, nanoseconds.
    pub(crate) taken_ns: Option<u64>,
    /// Free memory and disk of the machine.
    pub(crate) free: FreeSpace,
}

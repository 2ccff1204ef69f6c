//! Results of one span under one offered load.

use serde::{Deserialize, Serialize};
use stats::search::Step;

use super::counts::Counts;
use super::disturbance::Disturbance;
use super::failure::Failure;
use super::operation::{OperationResult, Restored};
use super::silence::Silence;

/// One span under one offered load: a steady phase, a stage of a ladder without its warm-up, or a
/// probe of a search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Name of its phase.
    pub phase: String,
    /// Number of the stage or probe, from 0; `None` for a steady phase.
    pub stage: Option<u32>,
    /// The requested probe of a search; otherwise `None`.
    pub probe: Option<Step>,
    /// Start of its span, nanoseconds since the start of the trial: the clock of
    /// [`Sample::at_ns`](crate::Sample::at_ns).
    pub begun_ns: u64,
    /// Length, nanoseconds; for a steady phase from the first client's start to the last client's
    /// end.
    pub length_ns: u64,
    /// Mean planned rate, requests per second; `None` for a closed load.
    pub planned_per_s: Option<f64>,
    /// Mean number of active clients; for an open load, the clients that share it.
    pub clients: u32,
    /// Results of the requests due (open load) or answered (closed load) in the span. With several
    /// operations, the last entry, named like the phase, is their total.
    pub operations: Vec<OperationResult>,
    /// Requests due in the span that were never sent because the timeout had passed.
    pub unsent: u64,
    /// Outcomes of the warm-up's operations, which no other figure includes. For a stage: all
    /// operations around its span that belong to no other stage.
    pub warmup: Counts,
    /// CPU time of the client threads.
    pub generator_cpu_ns: u64,
    /// Time for which client threads were runnable and waited for a CPU, nanoseconds.
    pub generator_run_delay_ns: u64,
    /// CPU time of the server's processes; `None` if there are none or they are not accessible.
    pub server_cpu_ns: Option<u64>,
    /// CPU time stolen by other processes during the span.
    pub disturbance: Disturbance,
    /// Share of the clients' time spent outside operations, on drawing and checking values.
    pub own_share: f64,
    /// Times of each client that restored records after cleans, from which the rate is computed
    /// (see [`Restored::rate_per_s`]); otherwise empty.
    pub restored: Vec<Restored>,
    /// Requests due in each interval of a load with limits; `None` without limits.
    pub due: Option<Due>,
    /// Silences of a steady key-value phase, for each operation in chronological order.
    pub silences: Vec<Silence>,
    /// The processes that offered the load, if there are several; the other figures are their sum.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contributors: Vec<Contributor>,
    /// Why it ended early, for example because the store failed; the results are those up to then.
    pub failure: Option<Failure>,
}

impl Point {
    /// The total of all operations: the last or only one. `None` if there were none.
    pub fn whole(&self) -> Option<&OperationResult> {
        self.operations.last()
    }

    /// An operation by name.
    pub fn operation(&self, name: &str) -> Option<&OperationResult> {
        self.operations.iter().find(|o| o.operation == name)
    }

    /// Time for which the generator's threads were busy: their CPU time, and the waits of
    /// contributors that share CPUs.
    pub fn generator_busy_ns(&self) -> u64 {
        let waits_ns = self.contributors.iter().map(Contributor::counted_wait_ns);
        self.generator_cpu_ns + waits_ns.sum::<u64>()
    }
}

/// What one process contributed to a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contributor {
    /// Its name, unique among those of a run: number and host, such as `worker 2 on db1`.
    pub name: String,
    /// Bound on the difference between its start and the planned one, nanoseconds: half of the
    /// shortest round trip, the drift of its clock during the load, and how late it started.
    pub start_skew_ns: u64,
    /// Its threads.
    pub threads: u32,
    /// True if other contributors use the same CPUs. A thread that waits for one is then busy:
    /// the load itself lacks CPUs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shares_cpus: bool,
    /// What it measured, with the total of its operations only.
    pub point: Point,
}

impl Contributor {
    /// Time for which its threads were busy.
    pub fn busy_ns(&self) -> u64 {
        self.point.generator_cpu_ns + self.counted_wait_ns()
    }

    fn counted_wait_ns(&self) -> u64 {
        if self.shares_cpus { self.point.generator_run_delay_ns } else { 0 }
    }
}

/// Due and late requests of an open load over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Due {
    /// Sent requests by the interval of [`Slowest::interval_ns`](super::Slowest::interval_ns) in
    /// which they were due, from the start of the point.
    pub due_per_interval: Vec<u64>,
    /// Those beyond each limit; one entry per limit.
    pub beyond: Vec<Beyond>,
    /// Requests that the generator sent late although a client was free, by more than half of the
    /// strictest limit.
    pub late: u64,
}

impl Due {
    /// Requests beyond a limit; `None` for an uncounted limit.
    pub fn beyond(&self, limit_ns: u64) -> Option<&Beyond> {
        self.beyond.iter().find(|beyond| beyond.limit_ns == limit_ns)
    }
}

/// Requests beyond one limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beyond {
    /// The limit: response time in nanoseconds; `u64::MAX` for failed requests.
    pub limit_ns: u64,
    /// Requests beyond the limit, by the interval in which they were due. A failed request is
    /// beyond every limit.
    pub over_per_interval: Vec<u64>,
}

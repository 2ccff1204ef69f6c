//! The result of one stage of a load.

use serde::{Deserialize, Serialize};

use super::{Disturbance, OperationResult, is_zero};

/// One stage of a staged load, without its beginning, in which the store settles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageResult {
    /// Its number in the load, from 0.
    pub stage: u32,
    /// Where the recorded part of it begins, nanoseconds since the phase's measurement began.
    pub from_ns: u64,
    /// How long the recorded part is, nanoseconds.
    pub length_ns: u64,
    /// Requests per second that were planned on its average; `None` under a closed load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_per_s: Option<f64>,
    /// Clients at work; of an open load those that share it.
    pub clients: u32,
    /// What was due in it under an open load, what was answered in it under a closed one. A stage
    /// of several operations has one more, named like the phase, for all.
    pub operations: Vec<OperationResult>,
    /// Requests that were due in it and never sent, because the time-out had passed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unsent: u64,
    /// CPU time of the server's processes; `None` where there are none, or not ours to see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpu_ns: Option<u64>,
    /// CPU time of the client threads.
    pub generator_cpu_ns: u64,
    /// Time in which client threads were ready to run and waited for a CPU, nanoseconds.
    pub generator_run_delay_ns: u64,
    /// What others took of the CPUs meanwhile.
    #[serde(default)]
    pub disturbance: Disturbance,
}

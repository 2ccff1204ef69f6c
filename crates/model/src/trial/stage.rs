//! The result of one stage of a load, and what of it was delayed because others took a CPU.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

use super::{LEFT_OUT_MAX, OperationResult, is_zero};

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
    /// What of all this was delayed because others took a CPU; absent where none did, or where it
    /// is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<DisturbedStage>,
}

impl StageResult {
    /// The same with the times of what nobody else delayed; as it is where that is everything, or
    /// too little.
    pub fn undisturbed(&self) -> Cow<'_, Self> {
        let Some(disturbed) = self.disturbed.as_ref().filter(|_| self.left_out_share() > 0.0)
        else {
            return Cow::Borrowed(self);
        };
        let mut rest = self.clone();
        let last = rest.operations.len().saturating_sub(1);
        for (i, own) in rest.operations.iter_mut().enumerate() {
            let same = disturbed.operations.iter().find(|o| o.operation == own.operation);
            // Of several operations a single one may have been delayed, and stands for all.
            let part = same.or_else(|| disturbed.operations.last().filter(|_| i == last));
            let Some(part) = part else { continue };
            own.service = own.service.without(&part.service);
            own.response = own.response.without(&part.response);
            own.lag = own.lag.without(&part.lag);
        }
        Cow::Owned(rest)
    }

    /// Share of its requests that is left out of times because others took a CPU, 0 to 1; 0 also
    /// where it is so much that nothing is left out.
    pub fn left_out_share(&self) -> f64 {
        let count = |o: Option<&OperationResult>| o.map_or(0, |o| o.service.count());
        let disturbed = self.disturbed.as_ref().and_then(|d| d.operations.last());
        let share = count(disturbed) as f64 / count(self.operations.last()).max(1) as f64;
        if share <= LEFT_OUT_MAX { share } else { 0.0 }
    }

    /// For how long others had the CPU of the generator and that of the server, as shares of its
    /// time, 0 to 1; the generator has so many `threads`, each of which tells both.
    pub fn lost_shares(&self, threads: u32) -> (f64, f64) {
        let time_ns = self.length_ns as f64 * f64::from(threads.max(1));
        let share = |ns: u64| (ns as f64 / time_ns.max(1.0)).min(1.0);
        let lost = self.disturbed.as_ref();
        lost.map_or((0.0, 0.0), |lost| (share(lost.generator_ns), share(lost.server_ns)))
    }
}

/// What of a stage was answered from the time at which others took the CPU of the generator or of
/// the server until as many requests were under way as then.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DisturbedStage {
    /// How often a CPU was taken, over all threads of the generator.
    pub times: u64,
    /// For how long that of the generator was gone, over its threads, nanoseconds.
    pub generator_ns: u64,
    /// For how long that of a server was, nanoseconds, over all threads of the generator.
    pub server_ns: u64,
    /// Such requests by operation, as in [`StageResult::operations`].
    pub operations: Vec<OperationResult>,
}

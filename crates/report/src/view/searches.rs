//! Results of searches for the highest rate within limits.

use model::Load;
use serde::Serialize;
use stats::Time;
use stats::search::Purpose;
use std::collections::BTreeMap;

use super::value::Value;
use super::{ProbeReason, ProbeVerdict, SearchOutcome};

/// Result of a search for the highest rate within limits.
#[derive(Clone, Debug, Serialize)]
pub struct SearchView {
    /// Profile of the workload.
    pub workload: String,
    /// Name of the phase, as in result rows.
    pub operation: String,
    /// Name of the target.
    pub target: String,
    /// Load.
    pub load: Load,
    /// The limits as typed: `p99<1ms`.
    pub limits: Vec<String>,
    /// The outcome: an answer, or why there is none.
    pub outcome: SearchOutcome,
    /// The result in one sentence, with a remedy if there is one.
    pub sentence: String,
    /// The highest rate within the limits, requests per second; null if a block found none. Its
    /// interval is over blocks, or with one block over the rounds of the confirmation.
    pub answer: Option<Value>,
    /// Blocks with a complete search.
    pub blocks: u32,
    /// Highest number of requests answered per second, ignoring the limits.
    pub peak_per_s: Option<f64>,
    /// The highest planned rate that certainly passed, below the lowest that certainly failed.
    pub held_per_s: Option<u64>,
    /// The lowest planned rate that certainly failed.
    pub missed_per_s: Option<u64>,
    /// Total length of the hold runs that passed just below the answer, over all blocks, seconds;
    /// rarer stalls are not covered. Null without an answer.
    pub held_s: Option<f64>,
    /// Costs near the answer: `server_cpus` (CPUs that the server used), `server_cpu_ns_per_op` and
    /// `generator_cpu_ns_per_op`, with intervals over probes. Empty without an answer.
    pub costs: BTreeMap<String, Value>,
    /// Result of each block.
    pub by_block: Vec<SearchBlock>,
    /// Number of all probes, including those omitted below.
    pub tried: u32,
    /// Number of all cool-downs, including those omitted below.
    pub rests: u32,
    /// Probes in order, block by block: the curve. Cool-downs are omitted if the store was back at
    /// its idle latency.
    pub probes: Vec<ProbeView>,
}

/// Result of a search in one block.
#[derive(Clone, Debug, Serialize)]
pub struct SearchBlock {
    /// Block, from 0.
    pub block: u32,
    /// The outcome; limits by clients or generator are only shown for the search as a whole.
    pub outcome: SearchOutcome,
    /// The answer with its interval over the rounds of the confirmation; null if none was found.
    pub answer: Option<Value>,
}

/// One probe of a search.
#[derive(Clone, Debug, Serialize)]
pub struct ProbeView {
    /// Its block, from 0.
    pub block: u32,
    /// Its number in the block, from 1.
    pub number: u32,
    /// Purpose.
    pub purpose: Purpose,
    /// Planned requests per second; null for the peak.
    pub rate_per_s: Option<u64>,
    /// Planned length, seconds.
    pub length_s: f64,
    /// Requests answered per second.
    pub answered_per_s: f64,
    /// Median response time, nanoseconds; at the peak the service time. Null without a reply.
    pub response_ns_p50: Option<Time>,
    /// 99th percentile of the same time, nanoseconds.
    pub response_ns_p99: Option<Time>,
    /// Share of requests that failed; null if nothing was measured.
    pub error_share: Option<f64>,
    /// Share of its time for which other processes used the CPUs of generator or server, 0 to 1.
    pub taken_share: f64,
    /// Share of requests beyond each limit; empty at the peak.
    pub beyond: Vec<BeyondView>,
    /// Verdict; null for a probe that is not judged.
    pub verdict: Option<ProbeVerdict>,
    /// Reason, if the times do not explain the verdict.
    pub reason: Option<ProbeReason>,
    /// Why it ended early; null if it did not.
    pub failure: Option<String>,
}

/// Requests of a probe beyond a limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BeyondView {
    /// The limit as typed: `p99<1ms`.
    pub limit: String,
    /// Share of the requests due.
    pub share: f64,
}

impl ProbeView {
    /// True for a cool-down after which the store was not yet back at its idle latency.
    pub(crate) fn is_slow_cool_down(&self) -> bool {
        self.reason == Some(ProbeReason::StillSlow)
    }
}

impl SearchView {
    /// Why the answer is only a lower bound; `None` if it is not, or if there is no answer.
    pub(crate) fn lower_bound_reason(&self) -> Option<&'static str> {
        match self.outcome {
            SearchOutcome::Clients => Some("its clients were the limit"),
            SearchOutcome::Generator => Some("the generator was the limit"),
            SearchOutcome::NeverMissed => Some("it was never saturated"),
            SearchOutcome::Found
            | SearchOutcome::Missed
            | SearchOutcome::NotJudged
            | SearchOutcome::Unsettled
            | SearchOutcome::NotHeld
            | SearchOutcome::Broken
            | SearchOutcome::Nothing
            | SearchOutcome::EndedEarly => None,
        }
    }
}

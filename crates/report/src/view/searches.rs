//! What searches for the highest rate within limits found.

use model::Load;
use serde::Serialize;
use stats::Time;
use stats::search::Purpose;
use std::collections::BTreeMap;

use super::value::Value;
use super::{ProbeReason, ProbeVerdict, SearchOutcome};

/// What a search for the highest rate within limits found.
#[derive(Clone, Debug, Serialize)]
pub struct SearchView {
    /// Profile of the workload.
    pub workload: String,
    /// Name of the phase, as that of rows of results.
    pub operation: String,
    /// Name of the target.
    pub target: String,
    /// How operations were offered.
    pub load: Load,
    /// The limits as they are typed: `p99<1ms`.
    pub limits: Vec<String>,
    /// What was found, or why no answer can be used.
    pub outcome: SearchOutcome,
    /// The result in one sentence, with its cure where there is one.
    pub sentence: String,
    /// The highest rate within the limits, requests per second; null where a block found none. Of
    /// one block its interval is over rounds of the confirmation, of several over the blocks.
    pub answer: Option<Value>,
    /// Blocks whose search came to its end.
    pub blocks: u32,
    /// Requests answered per second at most, ignoring the limits.
    pub peak_per_s: Option<f64>,
    /// The highest planned rate that surely held below the lowest that surely did not.
    pub held_per_s: Option<u64>,
    /// The lowest planned rate that surely did not hold.
    pub missed_per_s: Option<u64>,
    /// How long the rate below the answer held in long runs, in all blocks, seconds: rarer stalls
    /// are not covered.
    /// Null without an answer.
    pub held_s: Option<f64>,
    /// Near the answer: `server_cpus` (CPUs that the server used), `server_cpu_ns_per_op` and
    /// `generator_cpu_ns_per_op`, with intervals over probes. Empty without an answer.
    pub costs: BTreeMap<String, Value>,
    /// What each block found by itself.
    pub by_block: Vec<SearchBlock>,
    /// All probes, also those that are left out below.
    pub tried: u32,
    /// Rests among all probes, also those that are left out below.
    pub rests: u32,
    /// Probes in their order, block by block: the curve. Rests are left out where the store was at
    /// rest.
    pub probes: Vec<ProbeView>,
}

/// What a search found in one block.
#[derive(Clone, Debug, Serialize)]
pub struct SearchBlock {
    /// Block, from 0.
    pub block: u32,
    /// As that of the whole; who held an answer down is told of the whole alone.
    pub outcome: SearchOutcome,
    /// With its interval over rounds of the confirmation; null where none was found.
    pub answer: Option<Value>,
}

/// One probe of a search.
#[derive(Clone, Debug, Serialize)]
pub struct ProbeView {
    /// Its block, from 0.
    pub block: u32,
    /// Its number in the block, from 1.
    pub number: u32,
    /// What it was for.
    pub purpose: Purpose,
    /// Requests per second as planned; null for the peak.
    pub rate_per_s: Option<u64>,
    /// How long it was planned to be, seconds.
    pub length_s: f64,
    /// Requests answered per second.
    pub answered_per_s: f64,
    /// Median response time, nanoseconds; at the peak the service time. Null without an answer.
    pub response_ns_p50: Option<Time>,
    /// Its 99th percentile, nanoseconds.
    pub response_ns_p99: Option<Time>,
    /// Share of requests that failed; null where nothing was measured.
    pub error_share: Option<f64>,
    /// Share of its time for which others had the CPUs of generator or server, 0 to 1.
    pub taken_share: f64,
    /// How many requests were beyond each limit; empty at the peak.
    pub beyond: Vec<BeyondView>,
    /// Null where nothing is judged.
    pub verdict: Option<ProbeVerdict>,
    /// Why, where the times do not say it.
    pub reason: Option<ProbeReason>,
    /// Why it ended before its time; null where it did not.
    pub failure: Option<String>,
}

/// Requests of a probe beyond a limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BeyondView {
    /// The limit as it is typed: `p99<1ms`.
    pub limit: String,
    /// Share of the requests that were due.
    pub share: f64,
}

impl ProbeView {
    /// A rest that another one follows, since the store had not come to rest.
    pub(crate) fn is_slow_rest(&self) -> bool {
        self.reason == Some(ProbeReason::StillSlow)
    }
}

impl SearchView {
    /// Why the store sustains more than was found; `None` where its limit was, or nothing.
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

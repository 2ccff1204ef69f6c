//! Results of ramps, which raise a store's load in stages and lower it again.

use model::{Counts, Load};
use serde::Serialize;
use std::collections::BTreeMap;

use super::{RampOutcome, StageWay, Value};

/// Key for all operations of a stage together.
pub(crate) const ALL: &str = "all";

/// Relative difference up to which two rates belong to the same stage.
pub(crate) const SAME_RATE: f64 = 0.01;

/// One target's ramp, over all blocks.
#[derive(Clone, Debug, Serialize)]
pub struct RampView {
    /// Profile of the study.
    pub workload: String,
    /// Name of the phase, as in result rows.
    pub operation: String,
    /// Name of the target.
    pub target: String,
    /// Load.
    pub load: Load,
    /// True if each operation is followed by another on the same key, as in a pair of set and get.
    pub in_pairs: bool,
    /// Blocks with a complete ramp.
    pub blocks: u32,
    /// Kind of time that users wait: `response` or `service`.
    pub times: String,
    /// The outcome.
    pub outcome: RampOutcome,
    /// The outcome in one sentence.
    pub sentence: String,
    /// Rates `reached_per_s`, `knee_per_s`, `missed_per_s` (requested in the first stage that did
    /// not hold), `within_limit_per_s` and `peak_per_s`; and at the knee `server_cpus` and
    /// `generator_cpus`. Unknown ones are omitted.
    pub metrics: BTreeMap<String, Value>,
    /// The limit of the 99th percentile, nanoseconds; null if none was given.
    pub limit_ns: Option<u64>,
    /// Effect of an operation's place in a pair; omitted if no control measured it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<PlaceView>,
    /// Up to which load the target's cache helps; omitted without a cache, or if its database alone
    /// was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub helps: Option<HelpsView>,
    /// Values at shares of the knee, ascending.
    pub at: Vec<RampPoint>,
    /// The way up by requested load, then the way down in chronological order.
    pub stages: Vec<RampStage>,
    /// Data for charts; omitted from the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub charts: Option<RampCharts>,
}

impl RampView {
    /// True if its rates are only lower bounds of what the store sustains.
    pub(crate) fn is_lower_bound(&self) -> bool {
        matches!(self.outcome, RampOutcome::NeverMissed | RampOutcome::Generator)
    }

    /// The rate of a stage, requests per second: the requested one under an open load, the answered
    /// one under a closed load.
    pub(crate) fn rate_of(&self, stage: &RampStage) -> Option<Value> {
        let name = if self.times == "service" { "rate_per_s" } else { "asked_per_s" };
        stage.metrics.get(name).copied()
    }

    /// Times and costs at the knee.
    pub(crate) fn at_knee(&self) -> Option<&RampPoint> {
        self.at.iter().find(|point| point.share >= 1.0)
    }
}

/// A database behind a cache, compared with the database alone at the same shares of its peak.
#[derive(Clone, Debug, Serialize)]
pub struct HelpsView {
    /// The target without the cache.
    pub alone: String,
    /// Blocks with both.
    pub blocks: u32,
    /// The result in one sentence.
    pub sentence: String,
    /// `helps_from_per_s` and `helps_to_per_s`, the lowest and the highest rate at which the mean
    /// response time is lower with the cache;
    /// `stops_helping_per_s`, the rate of the next stage; `hit_ratio` of the reads at the former.
    /// Unknown ones are omitted.
    pub metrics: BTreeMap<String, Value>,
}

/// Effect of an operation's place in a pair, from service times of pairs in the ramp's order, of
/// pairs in the reverse order, and of operations that arrive separately.
#[derive(Clone, Debug, Serialize)]
pub struct PlaceView {
    /// The operations of a pair in the ramp's order.
    pub operations: Vec<String>,
    /// Blocks with all three.
    pub blocks: u32,
    /// Why it is inconclusive, or null.
    pub doubt: Option<String>,
    /// The result in one sentence.
    pub sentence: String,
    /// `rate_per_s`, answered; times such as `set.first.ns_p99` of each operation at the places
    /// `first`, `second` and `apart` (separate arrival); ratios with `ns_p50` and `ns_p99`:
    /// `first_by_second` for any operation, and with the operations' names `set_by_get.apart` and
    /// `set_by_get.both_orders`, in which the effect of the place cancels out.
    pub metrics: BTreeMap<String, Value>,
}

/// Values of a ramp at a share of its knee, interpolated between neighbouring stages of the way up.
#[derive(Clone, Debug, Serialize)]
pub struct RampPoint {
    /// Share of the knee.
    pub share: f64,
    /// `rate_per_s`; `ns_p50`, `ns_p99`, and for each operation such as `get` `get.ns_p50` and
    /// `get.ns_p99`; `server_cpu_ns_per_op` and `generator_cpu_ns_per_op`.
    pub metrics: BTreeMap<String, Value>,
}

/// One stage of a ramp, over all blocks.
#[derive(Clone, Debug, Serialize)]
pub struct RampStage {
    /// Its number in this list, from 1.
    pub number: u32,
    /// Way up or down.
    pub way: StageWay,
    /// Active clients.
    pub clients: u32,
    /// Blocks with this stage.
    pub blocks: u32,
    /// Blocks in which the store sustained it.
    pub held: u32,
    /// Requests that were due but never sent, over all blocks.
    pub unsent: u64,
    /// `planned_per_s` (omitted under a closed load), `asked_per_s`, `rate_per_s` (answered),
    /// `server_cpus` and `generator_cpus` (CPUs used), `server_cpu_ns_per_op`,
    /// `generator_cpu_ns_per_op`, `generator_run_delay_share`, `taken_share` (of its time, for
    /// which other processes used the CPUs of generator or server).
    pub metrics: BTreeMap<String, Value>,
    /// By operation; `all` for all operations together.
    pub operations: BTreeMap<String, RampOperation>,
}

impl RampStage {
    /// A percentile of an operation, nanoseconds: `p99` of `get`.
    pub(crate) fn time(&self, operation: &str, percentile: &str) -> Option<Value> {
        let of = self.operations.get(operation)?;
        let read = |kind: &str| of.metrics.get(&format!("{kind}_ns_{percentile}")).copied();
        read("response").or_else(|| read("service"))
    }
}

/// One operation of a stage.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RampOperation {
    /// Times by the metric names of result rows: `response_ns_p99` under an open load,
    /// `service_ns_p99`, `lag_ns_p99`.
    pub metrics: BTreeMap<String, Value>,
    /// Counts over all blocks.
    pub counts: Counts,
}

/// Data of a ramp for charts.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RampCharts {
    /// In block order.
    pub blocks: Vec<RampBlock>,
}

/// One block's ramp over time.
#[derive(Clone, Debug, Serialize)]
pub struct RampBlock {
    /// Block, from 0.
    pub block: u32,
    /// True if the trial failed during the ramp.
    pub failed: bool,
    /// In chronological order.
    pub stages: Vec<StageInTime>,
    /// Resource usage of server and generator; null without samples.
    pub saturation: Option<Saturation>,
}

/// A stage on the time axis.
#[derive(Clone, Debug, Serialize)]
pub struct StageInTime {
    /// Start of its recorded part, seconds since the start of the trial.
    pub from_s: f64,
    /// End of its recorded part.
    pub to_s: f64,
    /// Planned requests per second; null under a closed load.
    pub planned_per_s: Option<f64>,
    /// Active clients.
    pub clients: u32,
    /// Requests answered per second.
    pub answered_per_s: f64,
    /// 99th percentile of all operations, nanoseconds; null without a reply.
    pub ns_p99: Option<u64>,
    /// True if the store sustained it.
    pub holds: bool,
}

/// Samples of a trial, downsampled for drawing: the lowest and highest value in each of several
/// spans of equal length.
#[derive(Clone, Debug, Serialize)]
pub struct Saturation {
    /// Length of a span, seconds; the first starts with the trial.
    pub span_s: f64,
    /// Grouped by panel.
    pub series: Vec<SaturationSeries>,
}

/// One quantity over time.
#[derive(Clone, Debug, Serialize)]
pub struct SaturationSeries {
    /// Chart panel: `cpu` (CPUs used), `waiting` (threads waiting for a CPU), `memory` (bytes),
    /// `keys` (removed per second), `connections`, `network` (bytes per second), `packets` (per
    /// second), `switches` (per second), `fragmentation`.
    pub panel: String,
    /// Name within its panel.
    pub name: String,
    /// Lowest value of each span; null without samples.
    pub low: Vec<Option<f64>>,
    /// Highest value of each span; omitted if it equals the lowest in every span.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub high: Vec<Option<f64>>,
}

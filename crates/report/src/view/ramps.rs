//! What ramps found: a store's answers while its load is raised in stages, and lowered again.

use model::{Counts, Load};
use serde::Serialize;
use std::collections::BTreeMap;

use super::{RampOutcome, StageWay, Value};

/// What stands for all operations of a stage.
pub(crate) const ALL: &str = "all";

/// Part of a rate by which two may differ and still be of one and the same stage.
pub(crate) const SAME_RATE: f64 = 0.01;

/// One target's ramp, over all blocks.
#[derive(Clone, Debug, Serialize)]
pub struct RampView {
    /// Profile of the study.
    pub workload: String,
    /// Name of the phase, as that of rows of results.
    pub operation: String,
    /// Name of the target.
    pub target: String,
    /// How operations were offered.
    pub load: Load,
    /// True where operations follow each other on the same key, as the get of a pair follows its
    /// set.
    pub in_pairs: bool,
    /// Blocks with a whole ramp.
    pub blocks: u32,
    /// Which times tell how long users wait: `response` or `service`.
    pub times: String,
    /// What it found.
    pub outcome: RampOutcome,
    /// The outcome for people.
    pub sentence: String,
    /// Highest rates: `reached_per_s`, `knee_per_s`, `missed_per_s` (what the first stage asked for
    /// that did not hold), `within_limit_per_s` and `peak_per_s`, and of the knee's stage
    /// `server_cpus` and `generator_cpus`; what was not found is left out.
    pub metrics: BTreeMap<String, Value>,
    /// The limit of the 99th percentile, nanoseconds; null where none was given.
    pub limit_ns: Option<u64>,
    /// What the place of an operation in a pair takes, apart from the operation; left out where
    /// there was no control of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<PlaceView>,
    /// At shares of the knee, rising.
    pub at: Vec<RampPoint>,
    /// The way up by what was asked for, then the way down in the order of time.
    pub stages: Vec<RampStage>,
    /// Data for charts; left out of the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub charts: Option<RampCharts>,
}

impl RampView {
    /// True where its rates are only the least that the store sustains.
    pub(crate) fn is_lower_bound(&self) -> bool {
        matches!(self.outcome, RampOutcome::NeverMissed | RampOutcome::Generator)
    }

    /// The rate that a stage stands for, requests a second: what was asked for under an open load,
    /// what was answered under a closed one.
    pub(crate) fn rate_of(&self, stage: &RampStage) -> Option<Value> {
        let name = if self.times == "service" { "rate_per_s" } else { "asked_per_s" };
        stage.metrics.get(name).copied()
    }

    /// Times and costs at the knee itself.
    pub(crate) fn at_knee(&self) -> Option<&RampPoint> {
        self.at.iter().find(|point| point.share >= 1.0)
    }
}

/// What the place of an operation in a pair takes, apart from the operation, by service times of
/// pairs in the ramp's order, of pairs in the other order, and of operations that arrive each by
/// itself.
#[derive(Clone, Debug, Serialize)]
pub struct PlaceView {
    /// The operations of a pair in the ramp's order.
    pub operations: Vec<String>,
    /// Blocks that have all three.
    pub blocks: u32,
    /// Why nothing follows from it, or null.
    pub doubt: Option<String>,
    /// What it comes to, for people.
    pub sentence: String,
    /// `rate_per_s`, answered; times such as `set.first.ns_p99` of each operation at the places
    /// `first`, `second` and `apart`; ratios with `ns_p50` and `ns_p99`: `first_by_second`,
    /// whichever operation it is, and with the operations' names `set_by_get.apart` and
    /// `set_by_get.both_orders`, in which places cancel out.
    pub metrics: BTreeMap<String, Value>,
}

/// A ramp at a share of its knee, between the stages next to it on the way up.
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
    /// The way that it is a part of.
    pub way: StageWay,
    /// Clients at work.
    pub clients: u32,
    /// Blocks that have it.
    pub blocks: u32,
    /// Blocks in which it held.
    pub held: u32,
    /// Requests over all blocks that were due in it and never sent.
    pub unsent: u64,
    /// `planned_per_s` (left out under a closed load), `asked_per_s`, `rate_per_s` (answered),
    /// `server_cpus` and `generator_cpus` (CPUs used), `server_cpu_ns_per_op`,
    /// `generator_cpu_ns_per_op`, `generator_run_delay_share`, `taken_share` (of its time, for
    /// which others had the CPUs of generator or server).
    pub metrics: BTreeMap<String, Value>,
    /// By operation; `all` is all together.
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
    /// Times by the names that rows of results have: `response_ns_p99` under an open load,
    /// `service_ns_p99`, `lag_ns_p99`.
    pub metrics: BTreeMap<String, Value>,
    /// Counts over all blocks.
    pub counts: Counts,
}

/// What only charts need of a ramp.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RampCharts {
    /// In block order.
    pub blocks: Vec<RampBlock>,
}

/// One block's ramp in the course of time.
#[derive(Clone, Debug, Serialize)]
pub struct RampBlock {
    /// Block, from 0.
    pub block: u32,
    /// True where the trial failed in its course.
    pub failed: bool,
    /// In the order of time.
    pub stages: Vec<StageInTime>,
    /// What server and generator used; null where nothing was sampled.
    pub saturation: Option<Saturation>,
}

/// A stage in the course of time.
#[derive(Clone, Debug, Serialize)]
pub struct StageInTime {
    /// Where its recorded part begins, seconds since the trial began.
    pub from_s: f64,
    /// Where it ends.
    pub to_s: f64,
    /// Requests a second that were planned; null under a closed load.
    pub planned_per_s: Option<f64>,
    /// Clients at work.
    pub clients: u32,
    /// Requests answered a second.
    pub answered_per_s: f64,
    /// 99th percentile of all operations, nanoseconds; null without an answer.
    pub ns_p99: Option<u64>,
    /// True where it held.
    pub holds: bool,
}

/// What was sampled while a trial lasted, made smaller for drawing: in each of some spans of equal
/// length the lowest and the highest value.
#[derive(Clone, Debug, Serialize)]
pub struct Saturation {
    /// Length of a span, seconds; the first begins with the trial.
    pub span_s: f64,
    /// Grouped by panel.
    pub series: Vec<SaturationSeries>,
}

/// One quantity over time.
#[derive(Clone, Debug, Serialize)]
pub struct SaturationSeries {
    /// What it is drawn with: `cpu` (CPUs used), `waiting` (threads that wait for one), `memory`
    /// (bytes), `keys` (removed a second), `connections`, `network` (bytes a second), `packets` (a
    /// second), `switches` (a second), `fragmentation`.
    pub panel: String,
    /// Name within its panel.
    pub name: String,
    /// Lowest value of each span; null where nothing was sampled in it.
    pub low: Vec<Option<f64>>,
    /// Highest value of each span; left out where it is the lowest everywhere.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub high: Vec<Option<f64>>,
}

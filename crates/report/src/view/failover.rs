//! Results of faults that the plan caused.

use model::Load;
use serde::Serialize;

use super::Value;

/// What clients noticed of the faults of one cell.
#[derive(Clone, Debug, Serialize)]
pub struct FailoverView {
    /// Name of the target.
    pub target: String,
    /// Profile of the study, with its share.
    pub workload: String,
    /// Load.
    pub load: Load,
    /// What the plan does: `kill`, `hang`, `restart`, `partition`, `failover`,
    /// `migration`.
    pub fault: String,
    /// True if a command of the user caused it, on a server that cachedyno did not start.
    pub by_command: bool,
    /// Rate as a share of the highest one of the same trial; null for a rate of its own.
    pub share: Option<f64>,
    /// Planned rate, requests per second: mean over faults, with the lowest and highest.
    pub planned_per_s: Option<Value>,
    /// Highest rate of the same trials before the fault, requests per second; null without a share.
    pub peak_per_s: Option<Value>,
    /// Number of faults, including those of trials that failed once the fault was due.
    pub faults: u32,
    /// Faults after which the 99th percentile was within the limit again and stayed there; null
    /// without a limit.
    pub survived: Option<u32>,
    /// Time without an answered read, nanoseconds.
    pub reads_unavailable_ns: Option<SpreadView>,
    /// Time without an answered write, nanoseconds.
    pub writes_unavailable_ns: Option<SpreadView>,
    /// Time until the rate was within 5 % of that before, or within chance of it, nanoseconds; 0 if
    /// it never fell.
    pub rate_back_ns: Option<SpreadView>,
    /// Time until the 99th percentile was within the limit, nanoseconds.
    pub p99_back_ns: Option<SpreadView>,
    /// CPU use of the busiest server in its busiest second after the fault, of one CPU.
    pub cpu_peak_share: Option<SpreadView>,
    /// Time for which two servers had the role of primary, nanoseconds; null if the old primary
    /// was gone, or no other server was promoted.
    pub two_primaries_ns: Option<SpreadView>,
    /// What went wrong around some of the faults.
    #[serde(flatten)]
    pub trouble: FaultTrouble,
    /// Acknowledged writes found lost in all faults, and writes that were checked.
    pub writes_lost: Option<(u64, u64)>,
    /// Writes without an answer in all faults.
    pub writes_unknown: u64,
}

/// What went wrong around some of the faults of a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FaultTrouble {
    /// Number of trials that failed once the fault was due, so their faults count as not survived.
    pub failed: u32,
    /// Number of faults before which the 99th percentile was above the limit already; null without
    /// a limit.
    pub above_limit_before: Option<u32>,
    /// Number of faults after which no server was promoted; null if none was to be, or unknown.
    pub not_promoted: Option<u32>,
}

/// A number over several faults.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SpreadView {
    /// Median; null if it took longer than the measurement in at least half of all.
    pub median: Option<f64>,
    /// Largest; null if it took longer than the measurement.
    pub worst: Option<f64>,
    /// One number for each fault, ascending, without those that took longer.
    pub all: Vec<f64>,
}

/// The highest share of the rate that survives a fault.
#[derive(Clone, Debug, Serialize)]
pub struct SurvivalView {
    /// Name of the target.
    pub target: String,
    /// Profile of the study, without shares.
    pub workload: String,
    /// Limit of the 99th percentile of the response time, nanoseconds.
    pub limit_ns: u64,
    /// The highest share that every fault left within the limit, as all lower ones did; null if
    /// none did.
    pub share: Option<f64>,
    /// Its rate, requests per second: the mean over faults, with the lowest and highest.
    pub rate_per_s: Option<Value>,
    /// True if all servers of the target ran on this machine.
    pub on_one_host: bool,
    /// The result in a sentence.
    pub sentence: String,
}

//! Kinds of claims: the relations that a claim can expect.

use serde::{Deserialize, Serialize};

/// A figure that claims compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Operations per second of an operation and a number of clients.
    #[default]
    Rate,
    /// Score by the weights of the study's advice with a number of clients.
    Score,
    /// Of ramps: the highest rate answered in any stage, or with all clients active.
    Reached,
    /// Of ramps: the rate of the last stage in which all requests were answered.
    Knee,
    /// Of ramps: the rate of the last stage within the limit of the 99th percentile.
    WithinLimit,
    /// Of ramps: 99th percentile of response times at a rate.
    P99,
    /// Of ramps: mean response time at a rate.
    Mean,
    /// Of ramps: CPUs used by the server at a rate.
    Cpu,
    /// Of ramps: resident memory of the server at a rate.
    Memory,
    /// Of ramps: bytes that the server receives and sends per request at a rate.
    Network,
}

impl Figure {
    /// Name in study files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Score => "score",
            Self::Reached => "reached",
            Self::Knee => "knee",
            Self::WithinLimit => "within-limit",
            Self::P99 => "p99",
            Self::Mean => "mean",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Network => "network",
        }
    }

    /// True if only a ramp has it.
    pub fn is_of_ramps(self) -> bool {
        !matches!(self, Self::Rate | Self::Score)
    }

    /// True if it is one of the highest rates of a ramp.
    pub fn is_highest_rate(self) -> bool {
        matches!(self, Self::Reached | Self::Knee | Self::WithinLimit)
    }
}

/// A figure of `a` divided by that of `b` is between `min` and `max`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ratio {
    /// Target in the numerator.
    pub a: String,
    /// Target in the denominator.
    pub b: String,
    /// The compared figure.
    #[serde(default)]
    pub of: Figure,
    /// Operation compared; all together without one, which only figures at a rate allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Number of active clients, for rates and scores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// Shares of the lower knee, for figures at a rate; the ratio is within the range at each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<f64>,
    /// Smallest ratio that still confirms the statement.
    pub min: f64,
    /// Largest ratio that still confirms it; absent for no upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

/// The rate of each target is above that of the next one in every case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Targets, fastest first.
    pub targets: Vec<String>,
    /// Operations compared.
    pub operations: Vec<String>,
    /// Numbers of clients compared.
    pub clients: Vec<u32>,
}

/// The rate of `target` is above, or below, that of every other target in every case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extreme {
    /// The target claimed to be fastest or slowest.
    pub target: String,
    /// Operations compared.
    pub operations: Vec<String>,
    /// Numbers of clients compared.
    pub clients: Vec<u32>,
    /// Targets that it is compared with; every measured one if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub among: Vec<String>,
}

/// The ratio of the highest to the lowest rate is nearer to 1, or farther from it, at `operation`
/// than at each of `than`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// The operation at which targets are claimed to differ least or most.
    pub operation: String,
    /// Operations to compare with.
    pub than: Vec<String>,
    /// Number of active clients.
    pub clients: u32,
    /// Targets compared; every measured one if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub among: Vec<String>,
}

/// The rate of each target and operation rises at least `min`-fold from each number of clients to
/// the next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rises {
    /// Targets tested.
    pub targets: Vec<String>,
    /// Operations tested.
    pub operations: Vec<String>,
    /// Numbers of clients, ascending.
    pub clients: Vec<u32>,
    /// Smallest factor from one to the next that confirms the statement.
    #[serde(default = "one")]
    pub min: f64,
}

/// The rate of `operation` divided by that of `than` is between `min` and `max` on each target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operations {
    /// Targets tested.
    pub targets: Vec<String>,
    /// The operation in the numerator.
    pub operation: String,
    /// The operation in the denominator.
    pub than: String,
    /// Number of active clients.
    pub clients: u32,
    /// Smallest ratio that confirms the statement.
    pub min: f64,
    /// Largest ratio that confirms it; absent for no upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

/// The rate of `operation` in the claim's profile divided by that in the profile `than` is between
/// `min` and `max` on each target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profiles {
    /// Targets tested.
    pub targets: Vec<String>,
    /// The operation.
    pub operation: String,
    /// The profile in the denominator.
    pub than: String,
    /// Number of active clients in both.
    pub clients: u32,
    /// Smallest ratio that confirms the statement.
    pub min: f64,
    /// Largest ratio that confirms it; absent for no upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

/// The rate of `a` divided by that of `b` is at least `min` times as high with the most clients as
/// with the fewest, in each operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gains {
    /// The target claimed to gain.
    pub a: String,
    /// The other target.
    pub b: String,
    /// Operations tested.
    pub operations: Vec<String>,
    /// Fewest and most clients.
    pub clients: Vec<u32>,
    /// Smallest factor between the two ratios that confirms the statement.
    pub min: f64,
}

/// The mean service time of an operation grows with the data set as size^exponent, with an exponent
/// between `min` and `max`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Growth {
    /// Target tested.
    pub target: String,
    /// The operation.
    pub operation: String,
    /// Number of active clients.
    pub clients: u32,
    /// Smallest exponent that confirms the statement.
    pub min: f64,
    /// Largest exponent that confirms it.
    pub max: f64,
}

/// `a` overtakes `b` between two numbers of clients, both inclusive, in each operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crossover {
    /// The target that is slower with few clients and faster with many.
    pub a: String,
    /// The other target.
    pub b: String,
    /// Operations compared.
    pub operations: Vec<String>,
    /// Measured numbers of clients, ascending.
    pub clients: Vec<u32>,
    /// The crossover lies at this number of clients or above.
    pub min: f64,
    /// The crossover lies at this number of clients or below.
    pub max: f64,
}

/// The ratio of the 99th percentiles of `a` and `b` at the same rate grows at least `min`-fold from
/// the share `low` to the share `high` of the highest rate that `a` reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Diverges {
    /// The target claimed to fall behind.
    pub a: String,
    /// The target that it falls behind.
    pub b: String,
    /// A light load, as a share of the highest rate that `a` reached.
    pub low: f64,
    /// The load at which `a` has fallen behind, as such a share.
    pub high: f64,
    /// Smallest factor between the two ratios that confirms the statement.
    pub min: f64,
    /// Operation compared; all together without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
}

/// On each target a service time of one operation divided by that of another is between `min` and
/// `max`, both when each arrives alone and in pairs of both orders combined.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slower {
    /// The operation claimed to take longer.
    pub operation: String,
    /// The operation to compare with.
    pub than: String,
    /// [`Figure::P99`] or [`Figure::Mean`].
    #[serde(default = "p99")]
    pub of: Figure,
    /// Targets tested.
    pub targets: Vec<String>,
    /// Shares of the knee at which the ramp's own pairs are also reported.
    pub shares: Vec<f64>,
    /// Smallest ratio that still confirms the statement.
    #[serde(default = "one")]
    pub min: f64,
    /// Largest ratio that still confirms it; absent for no upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

/// Up to some load, the 99th percentile of a target stays within a factor of its value at the
/// lowest stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Steady {
    /// Targets tested.
    pub targets: Vec<String>,
    /// Share of a CPU below which stages are compared; without it, all up to the knee.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<f64>,
    /// Largest allowed ratio to the percentile of the lowest stage.
    pub within: f64,
}

/// The highest 99th percentile of an operation in any stage of a ramp is between `min_ms` and
/// `max_ms`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ceiling {
    /// Target tested.
    pub target: String,
    /// The operation.
    pub operation: String,
    /// Smallest percentile that confirms the statement, milliseconds.
    pub min_ms: f64,
    /// Largest percentile that confirms it, milliseconds.
    pub max_ms: f64,
}

/// `target` is preferable to `over`, because it sustains at least the same rate and is not slower
/// at a share of the lower knee.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pick {
    /// The recommended target.
    pub target: String,
    /// The rejected target.
    pub over: String,
    /// The share of the lower knee at which latencies are compared.
    pub share: f64,
}

/// A number of `target` is between `min` and `max`: a metric of an operation's row, or a fact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Within {
    /// Target tested.
    pub target: String,
    /// The operation of the row; without one, `of` is a fact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Name of the metric or fact, which ends in its unit: `rate_per_s`,
    /// `save_lowest_rate_share`.
    pub of: String,
    /// Smallest value that confirms the statement.
    #[serde(default)]
    pub min: f64,
    /// Largest value that confirms it; absent for no upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

impl Within {
    /// What contradicts itself, for the author of a study; `None` if nothing does.
    pub(super) fn contradiction(&self) -> Option<String> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
        let is_good = !self.of.is_empty() && self.of.chars().all(is_name);
        (!is_good).then(|| {
            format!("`of = \"{}\"` of a claim (expected the name of a metric or a fact)", self.of)
        })
    }
}

/// In every row of published tables, the rate times the size of a value is no more than the
/// bandwidth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fits {
    /// Tables checked.
    pub tables: Vec<String>,
    /// Column of the rate, requests per second.
    pub rate: String,
    /// Bytes that each request carries at least.
    pub bytes: f64,
    /// Column of the bandwidth, Mbit/s.
    pub bandwidth: String,
}

/// In published tables, a figure divided by the one before it is between `min` and `max`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Monotone {
    /// Tables checked.
    pub tables: Vec<String>,
    /// Columns with the figures.
    pub columns: Vec<String>,
    /// True to go from column to column within each row; otherwise from row to row within each
    /// column.
    #[serde(default)]
    pub across: bool,
    /// Smallest factor of a step that confirms the statement.
    #[serde(default = "one")]
    pub min: f64,
    /// Largest factor that confirms it; absent for no upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

fn one() -> f64 {
    1.0
}

fn p99() -> Figure {
    Figure::P99
}

impl Ratio {
    /// What contradicts itself, for the author of a study; `None` if nothing does.
    pub(super) fn contradiction(&self) -> Option<String> {
        let of = self.of.name();
        let expected = match self.of {
            Figure::Rate if self.operation.is_none() || self.clients.is_none() => {
                "`operation` and `clients`"
            }
            Figure::Score if self.operation.is_some() || self.clients.is_none() => {
                "`clients` and no `operation`"
            }
            Figure::Rate | Figure::Score if !self.shares.is_empty() => "no `shares`",
            of if of.is_highest_rate() && (self.operation.is_some() || !self.shares.is_empty()) => {
                "neither `operation` nor `shares`"
            }
            Figure::P99 | Figure::Mean | Figure::Cpu | Figure::Memory | Figure::Network
                if self.shares.is_empty() =>
            {
                "`shares` of the lower knee"
            }
            Figure::Cpu | Figure::Memory | Figure::Network if self.operation.is_some() => {
                "no `operation`"
            }
            of if of.is_of_ramps() && self.clients.is_some() => "no `clients`",
            _ => return None,
        };
        Some(format!("a ratio of `{of}` needs {expected}"))
    }
}

//! The answer as plain data: the JSON that docs/FORMAT.md describes, and the source of the text.

use serde::Serialize;

use super::deployment::Deployment;
use super::origin::{LeftOut, Origin};
use crate::view::Value;

/// Version of the JSON that [`SizingView`] serialises to.
pub const SIZING_FORMAT: u32 = 1;

/// Whether the records answer the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// At least one deployment is covered by measurements.
    Covered,
    /// At least one is, except for the failure of servers that it is to survive.
    PartlyCovered,
    /// None is: what is missing, and the runs that would measure it, are given instead.
    NotCovered,
}

/// The answer to a question of sizing.
#[derive(Clone, Debug, Serialize)]
pub struct SizingView {
    /// [`SIZING_FORMAT`].
    pub format: u32,
    /// The question in words.
    pub question: String,
    /// Whether there is an answer.
    pub outcome: Outcome,
    /// The answer in one sentence.
    pub sentence: String,
    /// Plans: the cheapest first if prices are known, else that with the fewest servers. Empty if
    /// the question is not covered.
    pub deployments: Vec<DeploymentView>,
    /// What no measurement covers, with the runs that would.
    pub missing: Vec<Missing>,
    /// Number of records that were read.
    pub records: u32,
    /// Measurements that were not used, with the reason.
    pub left_out: Vec<LeftOut>,
}

/// A lack of measurements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// What is missing, one sentence.
    pub text: String,
    /// Commands that would measure it; any of them.
    pub commands: Vec<String>,
}

/// Servers of one kind that answer the question.
#[derive(Clone, Debug, Serialize)]
pub struct DeploymentView {
    /// Name of the target in its run.
    pub target: String,
    /// Product and version.
    pub product: String,
    /// Address without credentials; null for private servers of the run.
    pub address: Option<String>,
    /// True if it was measured with TLS.
    pub tls: bool,
    /// Settings and limits of the measured servers, as text; can be empty.
    pub settings: String,
    /// Limits of its tier in words; omitted without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// The machine on which cachedyno measured.
    pub host: String,
    /// Servers to run, with replicas and those that may fail.
    pub servers: u32,
    /// Servers without replicas that carry the rate and keep all data when the others have failed.
    pub shards: u32,
    /// Further such servers, which may fail.
    pub spare_shards: u32,
    /// Replicas of each shard.
    pub replicas: u32,
    /// The rate; omitted if only memory is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<DeploymentRate>,
    /// Memory; omitted if it is not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryNeed>,
    /// Cost; omitted without a price of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// The measurements that it follows from.
    pub measurements: Vec<Measurement>,
    /// Assumptions and limits of the measurements.
    pub notes: Vec<String>,
    /// What was measured, for the commands of further runs.
    #[serde(skip)]
    pub(super) measured: Deployment,
}

impl DeploymentView {
    /// Its name for a sentence, with its tier.
    pub(super) fn named(&self) -> String {
        let tier = self.tier.as_ref().map_or_else(String::new, |words| format!(" (tier: {words})"));
        format!("`{}`{tier}", self.target)
    }
}

/// The rate of a deployment.
#[derive(Clone, Debug, Serialize)]
pub struct DeploymentRate {
    /// Requests per second that the shards answer within the limits, with the 95 % interval that
    /// verdicts use.
    pub measured_per_s: Value,
    /// Its lower end times the share to use, and at most `survived_per_s`: what may be counted on.
    pub usable_per_s: f64,
    /// Operations and their shares.
    pub mix: String,
    /// Length of a value in the measurement, bytes.
    pub value_bytes: u64,
    /// Number of keys in the measurement.
    pub keys: u64,
    /// False if `measured_per_s` is only a lower bound of what the servers answer.
    pub is_highest: bool,
    /// Share of its highest rate at which the store survived the failure of a server, which limits
    /// `usable_per_s`; omitted if that was not asked for or not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub survived_share: Option<f64>,
    /// Requests per second to as many primaries at which the failure of a server was survived,
    /// which limits `usable_per_s`; omitted as `survived_share` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub survived_per_s: Option<f64>,
}

/// Memory of a deployment.
#[derive(Clone, Debug, Serialize)]
pub struct MemoryNeed {
    /// Length of a value in the measurement, bytes.
    pub value_bytes: u64,
    /// Memory of a key with its value, bytes; its ends are the lowest and the highest block.
    pub bytes_per_key: Value,
    /// Memory of all keys, bytes, by the highest block.
    pub data_bytes: u64,
    /// Memory of the keys of one server when the spare ones have failed, bytes: the least
    /// `maxmemory`.
    pub maxmemory_bytes: u64,
    /// The same for all servers together, with replicas.
    pub total_bytes: u64,
    /// Memory for one server with what a save or a rewrite copies; omitted if not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub while_saving: Option<SavingNeed>,
}

/// Memory of one server while it saves its data.
#[derive(Clone, Debug, Serialize)]
pub struct SavingNeed {
    /// `save` or `rewrite`, whichever was measured.
    pub written_by: &'static str,
    /// Memory copied meanwhile, as a share of the memory of the keys, by the highest block.
    pub copied_share: f64,
    /// Resident memory divided by used memory, by the highest block, at least 1.
    pub resident_ratio: f64,
    /// Writes per second of one server during the measured save.
    pub writes_per_s: f64,
    /// Memory that one server needs, bytes, without the operating system and other programs.
    pub machine_bytes: u64,
}

/// Cost of a deployment.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// Currency of the price file.
    pub currency: String,
    /// All servers, per hour.
    pub per_hour: f64,
    /// Per million requests at the wanted rate; null if only memory is asked for.
    pub per_million: Option<f64>,
}

/// A measurement that a deployment follows from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measurement {
    /// What was measured, with its value.
    pub what: String,
    /// Id of the run.
    pub run: String,
    /// Cell of the run.
    pub cell: String,
    /// Start of the run, milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// Start of the run as text.
    pub started: String,
}

impl Measurement {
    pub(super) fn new(what: String, origin: &Origin) -> Self {
        Self {
            what,
            run: origin.run.clone(),
            cell: origin.cell.clone(),
            started_unix_ms: origin.started_unix_ms,
            started: origin.when.clone(),
        }
    }
}

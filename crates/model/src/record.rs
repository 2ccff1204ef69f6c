//! The parts of a record that are not trials. docs/FORMAT.md describes the directory.

use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer, Serialize};
use std::path::PathBuf;

use crate::calibration::{Calibration, NullRate};
use crate::plan::Plan;
use crate::trial::Failure;

/// Version of the record's directory that this code writes and reads.
pub const RECORD_FORMAT: u32 = 1;

/// Group of the facts about the disk of `--disk`.
pub const DISK: &str = "disk";

/// Group of the facts about the disk of a target with its own directory.
pub fn disk_group(target: &str) -> String {
    format!("{DISK} of {target}")
}

/// A fact about host or server, with a warning if it can disturb a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// Group: `host`, `cpu`, `memory`, `disk`, `disk of <target>`, `limits`, `pinning`, or
    /// `target <name>`.
    pub group: String,
    /// Name of the fact, for example `transparent huge pages`.
    pub name: String,
    /// Its value as text with its unit.
    pub value: String,
    /// Its effect on a measurement and how to fix it; `None` if it is fine.
    pub warning: Option<String>,
}

/// Facts about host and servers during a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conditions {
    /// All facts, in display order.
    pub facts: Vec<Condition>,
}

impl Conditions {
    /// A fact about the disk of a target: its own, or that of `--disk`.
    pub fn of_disk(&self, target: &str, name: &str) -> Option<&Condition> {
        let of = |group: &str| self.facts.iter().find(|f| f.group == group && f.name == name);
        of(&disk_group(target)).or_else(|| of(DISK))
    }
}

/// Written before the first trial: `header.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`RECORD_FORMAT`] of the writer.
    pub format: u32,
    /// Id of the run: eight hexadecimal characters.
    #[serde(deserialize_with = "run_id")]
    pub run: String,
    /// Version and commit of cachedyno.
    pub tool: String,
    /// The command line with passwords masked.
    pub command: Vec<String>,
    /// Wall-clock start, milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// Plan of the run.
    pub plan: Plan,
    /// Mark by which a host recognizes its own plan, see `rig::host_mark`. `None` if no host can
    /// recognize the record.
    pub host_mark: Option<String>,
    /// Conditions of the run.
    pub conditions: Conditions,
    /// The generator's rates on the null server, by key-value cell and phase.
    pub null_rates: Vec<NullRate>,
    /// Calibration of the machine; `None` if it was not calibrated.
    pub calibration: Option<Calibration>,
}

/// Result of a target's check before the first trial: a line of `targets.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetState {
    /// Name of the planned target.
    pub target: String,
    /// Product and version as the server reports it; `None` if it never answered.
    pub version: Option<String>,
    /// The server's configuration as it reports it: names and values.
    pub configuration: Vec<(String, String)>,
    /// Why it cannot be measured; `None` if it passed one verified operation.
    pub unavailable: Option<Failure>,
}

/// Length of a run's id in characters.
const RUN_ID_LENGTH: usize = 8;

/// True for the id of a run: eight lower-case hexadecimal characters. It becomes part of the names
/// of keys, tables and files, and of the patterns that remove them.
pub fn is_run_id(text: &str) -> bool {
    text.len() == RUN_ID_LENGTH && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Validates the run id of a record, which can come from an untrusted source.
fn run_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if is_run_id(&text) {
        return Ok(text);
    }
    let expected = "eight lower-case hexadecimal characters";
    Err(D::Error::invalid_value(Unexpected::Str(&text), &expected))
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SealStatus {
    /// All blocks that the effort requires were measured.
    Complete,
    /// The user stopped it; it can be resumed.
    Interrupted,
}

/// Written last: `seal.json`. A record without one was killed; it can be resumed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seal {
    /// How it ended.
    pub status: SealStatus,
    /// Wall-clock end, milliseconds since 1970-01-01 UTC.
    pub finished_unix_ms: u64,
    /// Number of complete blocks.
    pub blocks: u32,
    /// Why no more blocks were added.
    pub stopped_because: String,
    /// True if it was interrupted or killed before and then resumed.
    pub resumed: bool,
    /// True if it ended because a worker of the fleet, or the machine of the servers, was lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
    /// The generator's rates on the null server after the trials, for cells in which a store was
    /// nearly as fast as in [`Header::null_rates`]; the higher rate counts.
    pub null_rates: Vec<NullRate>,
}

/// An entry in a list of records.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// Its directory.
    pub path: PathBuf,
    /// Id of the run.
    pub run: String,
    /// Name of the study.
    pub study: String,
    /// Name of the scale.
    pub scale: &'static str,
    /// Start, milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// `complete`, `interrupted`, `running` or `unsealed`.
    pub status: &'static str,
    /// Names of the planned targets.
    pub targets: Vec<String>,
    /// Limits of a search in command-line syntax; empty for other runs.
    pub limits: Vec<String>,
    /// Files that were changed after the record was sealed.
    pub changed: Vec<String>,
    /// Names of existing stores in which a killed run may have left data.
    pub may_hold_leftovers: Vec<String>,
}

//! Servers of a target over time, around a fault.

use serde::Serialize;

/// CPU use and roles of a target's servers during a phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServerCharts {
    /// Length of an interval of CPU use, seconds.
    pub interval_s: f64,
    /// The block, from 0, in which clients were affected longest.
    pub worst: u32,
    /// The servers of each block, by name, in the order of
    /// [`RowCharts::by_block`](super::RowCharts::by_block).
    pub blocks: Vec<Vec<ServerCourse>>,
}

/// One server during a phase of one block.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServerCourse {
    /// Its address, as in events.
    pub name: String,
    /// Use of one CPU in each interval; null while it does not run.
    pub cpu_share: Vec<Option<f64>>,
    /// What it was, in chronological order without gaps.
    pub roles: Vec<RoleSpan>,
}

/// A span of time in which a server had a role.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RoleSpan {
    /// Seconds since the start of the measurement.
    pub from_s: f64,
    /// Its end.
    pub to_s: f64,
    /// The role.
    pub role: ServerRole,
}

/// Role of a server, or why it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerRole {
    /// Accepts writes.
    Primary,
    /// Has all data of its primary.
    Replica,
    /// A replica that lost its primary, or does not have all data yet.
    Behind,
    /// Watches the others.
    Sentinel,
    /// Does not run.
    Gone,
    /// Runs, but does not answer.
    Hangs,
    /// It never reported its role.
    Unknown,
}

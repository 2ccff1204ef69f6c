//! What was measured: a target with everything that its rate depends on.

use model::record::Conditions;
use model::{Cell, Header, PlannedTarget, Program};
use std::collections::BTreeMap;

/// Settings of a private server that are not part of its configuration here: how many servers there
/// are is counted apart, and a run fits limits of connections and memory to its load.
const APART: [&str; 3] = ["shards", "replicas", "maxclients"];
/// Where a private server listens.
pub(super) const LISTEN: &str = "listen";

/// Everything that a rate depends on except the number of servers. Rates of different families say
/// nothing about each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Family {
    /// Product and version as the server reported them.
    pub(super) product: String,
    /// Target that starts such a private server.
    pub(super) starts: &'static str,
    /// Address without credentials; `None` for private servers.
    pub(super) address: Option<String>,
    /// True if clients use TLS.
    pub(super) tls: bool,
    /// Settings of private servers, with where they listen; empty at a URL.
    pub(super) settings: BTreeMap<String, String>,
    /// Limits of CPU, memory and disk, as text.
    pub(super) limits: Vec<String>,
    /// The machine of the run, and the CPUs of the servers on it.
    pub(super) host: String,
}

/// A target of a family.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Deployment {
    /// Name in its run.
    pub(super) target: String,
    pub(super) family: Family,
    /// Servers among which keys are spread; `None` for a cluster of unknown size.
    pub(super) shards: Option<u32>,
    /// Replicas of each.
    pub(super) replicas: u32,
}

impl Deployment {
    /// The target of a cell; `None` if it never reported its version, or only repeats another one.
    pub(super) fn of(header: &Header, cell: &Cell, product: Option<&str>) -> Option<Self> {
        let target = header.plan.target(&cell.target)?;
        if target.control_of.is_some() {
            return None;
        }
        Some(Self {
            target: target.name.clone(),
            family: Family {
                product: product?.into(),
                starts: target.program.map_or(target.product.name(), Program::name),
                address: target.address.clone(),
                tls: target.is_tls(),
                settings: settings(target),
                limits: limits(target, cell),
                host: host(&header.conditions),
            },
            shards: target.shards(),
            replicas: target.replicas(),
        })
    }

    /// True if both have the same servers, whatever their names in their runs.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (&self.family, self.shards, self.replicas) == (&other.family, other.shards, other.replicas)
    }

    /// Servers with their replicas; 1 for a cluster of unknown size.
    pub(super) fn servers(&self) -> u32 {
        self.shards.unwrap_or(1) * (1 + self.replicas)
    }

    /// True if several private servers shared one host.
    pub(super) fn shares_host(&self) -> bool {
        self.family.address.is_none() && self.servers() > 1
    }
}

impl Family {
    /// Settings and limits as text; empty if there are none.
    pub(super) fn configuration(&self) -> String {
        let settings = self.settings.iter().map(|(name, value)| format!("{name}={value}"));
        settings.chain(self.limits.iter().cloned()).collect::<Vec<_>>().join(", ")
    }
}

fn settings(target: &PlannedTarget) -> BTreeMap<String, String> {
    if target.address.is_some() {
        return BTreeMap::new();
    }
    let mut settings = target.settings.clone();
    // Servers of a cluster reach each other by ports only.
    let usual = if settings.contains_key("shards") { "tcp" } else { "unix" };
    settings.entry(LISTEN.into()).or_insert_with(|| usual.into());
    let fitted = target.product.memory_setting();
    settings.retain(|name, _| !APART.contains(&&**name) && Some(&**name) != fitted);
    settings
}

fn limits(target: &PlannedTarget, cell: &Cell) -> Vec<String> {
    let cpus = cell.workload.server_cpus().map(|count| format!("{count} CPUs each"));
    let memory = cell.workload.memory();
    let memory = memory.map(|m| format!("{} of memory", stats::format_bytes(m.limit_bytes)));
    let disk = target.disk_limit.map(|limit| limit.to_string());
    [cpus, memory, disk].into_iter().flatten().collect()
}

/// The machine of a run, from its conditions.
fn host(conditions: &Conditions) -> String {
    let fact = |group: &str, name: &str| {
        let own = conditions.facts.iter().find(|f| (&*f.group, &*f.name) == (group, name));
        own.map(|fact| fact.value.clone())
    };
    let model = fact("cpu", "model");
    let cpus = fact("cpu", "CPUs");
    let servers = fact("pinning", "CPUs of the server").map(|c| format!("servers on CPUs {c}"));
    let known: Vec<String> = [model, cpus, servers].into_iter().flatten().collect();
    known.join(", ")
}

//! What was measured: a target with everything that its rate depends on.

use model::record::Conditions;
use model::tier::Tier;
use model::{Cell, Header, PlannedTarget, Program};
use std::collections::BTreeMap;

/// Settings of a private server that are not part of its configuration here: how many servers there
/// are is counted apart, and a run fits limits of connections and memory to its load.
const APART: [&str; 3] = ["shards", "replicas", "maxclients"];
/// Where a private server listens.
pub(super) const LISTEN: &str = "listen";

/// Settings that replace a failed server, and where servers listen. With others a store survives
/// the same or not, but its servers are as fast.
pub(super) const OF_GROUP: [&str; 6] = [
    LISTEN,
    "sentinels",
    "down-after-milliseconds",
    "failover-timeout",
    "parallel-syncs",
    "cluster-node-timeout",
];

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
    /// Its tier as the value of `--set tier.NAME`; empty without one.
    pub(super) tier: String,
    /// The machine of the run, and the CPUs of the servers on it.
    pub(super) host: String,
}

/// A target of a family.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Deployment {
    /// Name in its run.
    pub(super) target: String,
    pub(super) family: Family,
    /// True for a cluster, whose nodes replace a failed primary themselves.
    pub(super) is_cluster: bool,
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
        let has = |setting: &str| target.settings.contains_key(setting);
        Some(Self {
            target: target.name.clone(),
            family: Family {
                product: product?.into(),
                starts: target.program.map_or(target.product.name(), Program::name),
                address: target.address.clone(),
                tls: target.is_tls(),
                settings: settings(target),
                limits: limits(target, cell),
                tier: tier_text(&target.tier),
                host: host(&header.conditions),
            },
            is_cluster: match &target.address {
                Some(_) => target.shards().is_none(),
                None => has("shards") && !has("proxy"),
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

    /// Memory of each server by its tier, which limits all servers of a target together; `None`
    /// if no tier limits it.
    pub(super) fn tier_memory_bytes(&self) -> Option<u64> {
        Some(self.family.tier().memory?.bytes() / u64::from(self.servers()))
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
        let limits = self.limits.iter().cloned();
        let tier = self.tier_words().map(|words| format!("tier: {words}"));
        settings.chain(limits).chain(tier).collect::<Vec<_>>().join(", ")
    }

    /// Its tier; an empty one if it has none.
    pub(super) fn tier(&self) -> Tier {
        Tier::parse(&self.tier).unwrap_or_default()
    }

    /// Its tier in words; `None` without one.
    pub(super) fn tier_words(&self) -> Option<String> {
        (!self.tier.is_empty()).then(|| self.tier().to_string())
    }

    /// The same servers in another tier.
    pub(super) fn in_tier(&self, tier: &Tier) -> Self {
        Self { tier: tier_text(tier), ..self.clone() }
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

fn tier_text(tier: &Tier) -> String {
    let limits: BTreeMap<String, String> = tier.clone().into();
    let limits = limits.iter().map(|(key, value)| format!("{key}={value}"));
    limits.collect::<Vec<_>>().join(",")
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

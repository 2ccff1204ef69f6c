//! The plan of a run: every target, cell, phase and rule, fixed before anything starts.
//!
//! A plan has no credentials and is stored completely in the record, so that a run can be resumed,
//! repeated and judged from its record alone.

use serde::{Deserialize, Serialize};
use stats::search::Step;
use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::app_cache::{AppCache, DataFiles};
use crate::cache_aside::CacheAside;
use crate::load::{Load, Schedule};
use crate::memory::MemoryPlan;
use crate::require::Requirement;
use crate::study::{Advice, Claim, PublishedTable, Source};
use crate::trial::Trial;

pub use crate::kv::{Kv, KvOperation};
pub use crate::phase::{Control, Phase, Stop};
pub use crate::planned_target::PlannedTarget;
pub use crate::product::Product;

/// Scale of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// A first answer in one to three minutes.
    Quick,
    /// The default: longer phases and more blocks, for at most a quarter of an hour.
    Standard,
    /// As large as in the publication that the study follows.
    Full,
}

impl Scale {
    /// Name on the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Standard => "standard",
            Self::Full => "full",
        }
    }
}

/// Where values are generated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Generation {
    /// Before the clock starts; latency and rate exclude it.
    #[default]
    Outside,
    /// After the clock starts, like the 2019 script.
    Inside,
}

/// Layout of sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// One key, row or file per session; plain write, read, replace.
    #[default]
    Plain,
    /// A shop's page: open with the real session handler's lock, read, think, write, close.
    Page,
}

/// Connection handling and system calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// One persistent connection per client; statements are prepared once.
    #[default]
    Persistent,
    /// Like the 2019 script: MySQL reconnects for every operation, Redis keeps its connection, and
    /// files use the system calls of PHP's functions.
    #[serde(rename = "as-2019")]
    As2019,
}

/// Names of sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Names {
    /// `<client>_<index>`, client from 1, index from 0, like the 2019 script.
    Counter,
    /// 32 hexadecimal characters, like PHP's default session ids.
    #[default]
    Hex,
}

/// Order of visits to existing sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// In order of creation.
    Sequential,
    /// Uniformly random among the client's own sessions.
    #[default]
    Random,
}

/// The session workload of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sessions {
    /// Profile of the study that it comes from, for example `steady`.
    pub profile: String,
    /// Layout of keys, files and rows.
    pub layout: Layout,
    /// Connection handling and system calls.
    pub connections: Connections,
    /// Naming of sessions.
    pub names: Names,
    /// Order of visits to existing sessions.
    pub order: Order,
    /// Where values are generated.
    pub generation: Generation,
    /// Sessions that exist before the first phase, over all clients; 0 if the phases create them.
    pub filled: u64,
    /// Bytes of a session's value.
    pub value_bytes: usize,
    /// Lifetime of a session in seconds.
    pub ttl_s: u64,
    /// One in this many values read is compared byte by byte; length is always checked.
    pub verify_one_in: u64,
    /// Pause between reading and writing a page's session, in nanoseconds.
    pub think_ns: u64,
    /// Deletion of expired sessions by the handlers; `None` if no phase has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gc: Option<SessionGc>,
    /// Measured phases, in order.
    pub phases: Vec<Phase>,
}

/// Deletion of expired sessions within requests, by the handlers that do it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionGc {
    /// One in this many requests of a client collects, at least 1.
    pub divisor: u64,
    /// Names of the phases in which handlers collect; in the others, expired sessions stay.
    pub phases: Vec<String>,
}

/// Operations on data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Workload {
    /// Sessions of a shop.
    Sessions(Sessions),
    /// Keys and values.
    Kv(Kv),
    /// Records with tags, behind the software of a shop.
    #[serde(rename = "app-cache")]
    AppCache(AppCache),
    /// Rows of a database, read through a cache.
    #[serde(rename = "cache-aside")]
    CacheAside(CacheAside),
}

impl Workload {
    /// Layout of its data; key-value workloads use the plain layout, one entry per key.
    pub fn layout(&self) -> Layout {
        match self {
            Self::Sessions(sessions) => sessions.layout,
            Self::Kv(_) | Self::AppCache(_) | Self::CacheAside(_) => Layout::Plain,
        }
    }

    /// Name of the profile in results.
    pub fn profile(&self) -> &str {
        match self {
            Self::Sessions(sessions) => &sessions.profile,
            Self::Kv(kv) => &kv.profile,
            Self::AppCache(cache) => &cache.profile,
            Self::CacheAside(aside) => &aside.profile,
        }
    }

    /// Name of the study's profile, without a size.
    pub fn study_profile(&self) -> &str {
        match self {
            Self::AppCache(cache) => cache.sizes_of.as_deref().unwrap_or(&cache.profile),
            Self::Kv(kv) => kv.study_profile(),
            other => other.profile(),
        }
    }

    /// Measured phases, in order.
    pub fn phases(&self) -> &[Phase] {
        match self {
            Self::Sessions(sessions) => &sessions.phases,
            Self::Kv(kv) => &kv.phases,
            Self::AppCache(cache) => &cache.phases,
            Self::CacheAside(aside) => &aside.phases,
        }
    }

    /// True for a shop's pages, which lock their session.
    pub fn is_page(&self) -> bool {
        matches!(self, Self::Sessions(sessions) if sessions.layout == Layout::Page)
    }

    /// Where values are generated.
    pub fn generation(&self) -> Generation {
        match self {
            Self::Sessions(sessions) => sessions.generation,
            Self::Kv(_) | Self::AppCache(_) | Self::CacheAside(_) => Generation::Outside,
        }
    }

    /// True if a missing key is not an error: it was not filled, has expired, or may have been
    /// removed by an operation.
    pub fn misses_are_planned(&self) -> bool {
        let keeping = ["get", "set", "insert", "rmw"];
        let keeps = |o: &KvOperation| o.command.is_none() && keeping.contains(&&*o.name);
        match self {
            Self::Sessions(_) => false,
            Self::Kv(kv) => kv.filled_share < 1.0 || !kv.operations.iter().all(keeps),
            Self::AppCache(_) | Self::CacheAside(_) => true,
        }
    }

    /// Memory limit of the private servers; `None` for no limit.
    pub fn memory(&self) -> Option<MemoryPlan> {
        match self {
            Self::Sessions(_) | Self::CacheAside(_) => None,
            Self::Kv(kv) => kv.memory,
            Self::AppCache(cache) => cache.memory,
        }
    }

    /// True if the plan removes service or memory, so that a failure is a result.
    pub fn may_fail(&self) -> bool {
        self.actions().iter().any(|action| action.what.interrupts_service()) || self.swaps()
    }

    /// True if the workload measures a certain amount of data, which evictions would reduce.
    pub fn needs_all_data(&self) -> bool {
        matches!(self, Self::Kv(kv) if kv.memory.is_some())
    }

    /// Checks that this load is supported. Errors: what was expected.
    pub fn supports(&self, load: &Load) -> Result<(), &'static str> {
        match (self, load) {
            (Self::Kv(_), _) => Ok(()),
            (Self::CacheAside(_), Load { pipeline: 1, schedule, .. }) => match schedule {
                Schedule::Steady(_) | Schedule::Share(_) | Schedule::Shares(_) => Ok(()),
                Schedule::Stages(_) | Schedule::Search(_) => {
                    Err("a constant load, or shares of a peak")
                }
            },
            (_, Load { pipeline: 1, .. }) if !load.is_planned() && !load.is_staged() => Ok(()),
            _ => Err("a closed load with a constant number of clients and no pipeline"),
        }
    }

    /// CPUs of each private server; `None` for all that servers may use.
    pub fn server_cpus(&self) -> Option<usize> {
        match self {
            Self::Kv(kv) => kv.server_cpus.map(|cpus| cpus as usize),
            _ => None,
        }
    }

    /// TTL of written data in seconds; 0 for none.
    pub fn ttl_s(&self) -> u64 {
        match self {
            Self::Sessions(sessions) => sessions.ttl_s,
            Self::Kv(kv) => kv.ttl_s,
            Self::AppCache(_) => 0,
            Self::CacheAside(aside) => aside.ttl_s,
        }
    }
}

/// Target × workload × load: the smallest unit that is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Unique in the plan: `<target>/<profile>/<clients>` with `-one` for one session, or
    /// `<target>/<profile>/<size>/<clients>` for a profile with sizes.
    pub id: String,
    /// Name of a planned target.
    pub target: String,
    /// Operations on data.
    pub workload: Workload,
    /// Load.
    pub load: Load,
}

impl Cell {
    /// Generator threads, at least 1: event loops, or one per client.
    pub fn threads(&self) -> u32 {
        let threads = match &self.workload {
            Workload::Sessions(_) | Workload::AppCache(_) | Workload::CacheAside(_) => {
                self.load.clients
            }
            Workload::Kv(kv) => kv.threads,
        };
        threads.max(1)
    }
}

/// Stop rule of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effort {
    /// Wall time for all blocks: as many as fit if all take as long as the first. 0 for no limit.
    pub budget_ns: u64,
    /// Minimum number of blocks, regardless of the budget.
    pub blocks_min: u32,
    /// Maximum number of blocks.
    pub blocks_max: u32,
}

/// Everything a run will do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Name of the study.
    pub study: String,
    /// Title of the study.
    pub title: String,
    /// Question that the study answers.
    pub question: String,
    /// Source of the study.
    pub source: Source,
    /// Amount of measurement.
    pub scale: Scale,
    /// Chosen profiles.
    pub profiles: Vec<String>,
    /// Seed of order, keys and values.
    pub seed: u64,
    /// Stop rule.
    pub effort: Effort,
    /// Ratios within `1/(1+zone)` and `1+zone` count as equal.
    pub equivalence_zone: f64,
    /// Nanoseconds after which an unanswered operation counts as timed out.
    pub timeout_ns: u64,
    /// Nanoseconds without any answer after which a trial ends with what it measured; 0 for no
    /// limit, as in older records.
    #[serde(default)]
    pub stall_ns: u64,
    /// Stores under test.
    pub targets: Vec<PlannedTarget>,
    /// All cells; each block runs every one once.
    pub cells: Vec<Cell>,
    /// Tables of the source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<PublishedTable>,
    /// Statements to judge.
    pub claims: Vec<Claim>,
    /// The recommendation table.
    pub advice: Option<Advice>,
    /// Requirements of every result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<Requirement>,
    /// Limit of the 99th percentile for a ramp's highest rate within a limit, nanoseconds; `None`
    /// for no limit.
    pub limit_ns: Option<u64>,
    /// Other processes and machines that take part.
    #[serde(flatten)]
    pub places: Places,
    /// Absolute directory for the swap of targets with planned swap; `None` for that of their data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap_dir: Option<PathBuf>,
}

/// Processes and machines that take part in a run besides its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places {
    /// Worker processes that offer the loads together; 0 if the process that runs the plan
    /// does. The threads of a cell are those of all workers.
    #[serde(default, skip_serializing_if = "no_workers")]
    pub workers: u32,
    /// Host name of the machine that private servers run on; `None` for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers_on: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "required by serde")]
fn no_workers(workers: &u32) -> bool {
    *workers == 0
}

impl Plan {
    /// The usual [`Plan::stall_ns`]: 30 seconds, but at least the timeout of an operation, which
    /// may take that long.
    pub fn stall_ns_by_default(timeout_ns: u64) -> u64 {
        timeout_ns.max(30_000_000_000)
    }

    /// The planned target with this name.
    pub fn target(&self, name: &str) -> Option<&PlannedTarget> {
        self.targets.iter().find(|t| t.name == name)
    }

    /// The cell of a target with this profile (with its size or share) and load; `None` without it.
    pub fn cell_at(&self, target: &str, profile: &str, load: &Load) -> Option<&Cell> {
        self.cells.iter().find(|cell| {
            (cell.target.as_str(), cell.workload.profile(), &cell.load) == (target, profile, load)
        })
    }

    /// The key-value workload of a cell, if event loops offer it: its target has a protocol of keys
    /// and values. On other stores, each client has a thread.
    pub fn on_event_loops<'a>(&self, cell: &'a Cell) -> Option<&'a Kv> {
        let Workload::Kv(kv) = &cell.workload else { return None };
        self.target(&cell.target)?.product.keeps_keys().then_some(kv)
    }

    /// True if the cell limits the memory of a server with settings by which it then drops keys.
    pub fn drops_keys(&self, cell: &Cell) -> bool {
        let evicts = self.target(&cell.target).is_some_and(PlannedTarget::evicts);
        evicts && cell.workload.memory().is_some()
    }

    /// The next probe of a trial whose load is a search; `None` if the search is over, the trial
    /// failed, or the load is not a search.
    pub fn next_probe(&self, trial: &Trial) -> Option<Step> {
        let cell = self.cells.iter().find(|cell| cell.id == trial.cell)?;
        let search = cell.load.search().filter(|_| trial.failure.is_none())?;
        search.next((self.seed, trial.block), &trial.points)
    }

    /// Layouts of a target's data; the plain layout if it has no cell, as in a search that was
    /// killed immediately.
    pub fn layouts(&self, target: &str) -> BTreeSet<Layout> {
        let cells = self.cells.iter().filter(|cell| cell.target == target);
        let mut layouts: BTreeSet<Layout> = cells.map(|cell| cell.workload.layout()).collect();
        if layouts.is_empty() {
            layouts.insert(Layout::Plain);
        }
        layouts
    }

    /// The cells of application caches, in order, each with its workload.
    pub fn caches(&self) -> impl Iterator<Item = (&Cell, &AppCache)> {
        self.cells.iter().filter_map(|cell| match &cell.workload {
            Workload::AppCache(cache) => Some((cell, cache)),
            Workload::Sessions(_) | Workload::Kv(_) | Workload::CacheAside(_) => None,
        })
    }

    /// The files of records and lists; `None` if they are generated.
    pub fn files(&self) -> Option<&DataFiles> {
        self.caches().find_map(|(_, cache)| cache.files.as_ref())
    }
}

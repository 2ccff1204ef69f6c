//! What a run will do: every target, cell, phase and rule, decided before anything is started.
//!
//! A plan holds no credentials and is stored whole in the record, so that a run can be resumed,
//! repeated and judged from its record alone.

use serde::{Deserialize, Serialize};
use stats::search::Step;
use std::collections::{BTreeMap, BTreeSet};

use crate::action::{Act, Action};
use crate::app_cache::{AppCache, Backend, CM_PREFIX, DataFiles};
use crate::load::Load;
use crate::memory::MemoryPlan;
use crate::program::Program;
use crate::require::Requirement;
use crate::study::{Advice, Claim};
use crate::trial::Trial;

pub use crate::phase::{Control, Phase, Stop};
pub use crate::product::Product;

/// How much of a study is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// A first answer in one to three minutes.
    Quick,
    /// The default: longer phases and more blocks, for a quarter of an hour at most.
    Standard,
    /// The size of the study's source.
    Full,
}

impl Scale {
    /// The name that users type and records carry.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Standard => "standard",
            Self::Full => "full",
        }
    }
}

/// A store under test, as planned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedTarget {
    /// Name in this run, for example `redis`.
    pub name: String,
    /// Which driver and which server; of a cache's backend the first of its stores.
    pub product: Product,
    /// The program that its private server is; `None` for the product's own.
    pub program: Option<Program>,
    /// The software whose application cache it is; `None` for other workloads.
    pub backend: Option<Backend>,
    /// Where it is, without credentials; `None` means that a private server is started.
    pub address: Option<String>,
    /// Server settings of a private server, as its configuration file spells them; those of a
    /// cache's backend with the product before them: `redis.save`.
    pub settings: BTreeMap<String, String>,
    /// Name of the target that this one repeats for the A/A control.
    pub control_of: Option<String>,
    /// True when the user named this target: if it cannot be used, the run fails with exit code 3.
    pub named: bool,
}

impl PlannedTarget {
    /// What was chosen of `Cm_Cache_Backend_Redis`, by the names of
    /// [`CM_SETTINGS`](crate::app_cache::CM_SETTINGS).
    pub fn cm_settings(&self) -> BTreeMap<String, String> {
        let own = |(key, value): (&String, &String)| {
            Some((key.strip_prefix(CM_PREFIX)?.to_string(), value.clone()))
        };
        self.settings.iter().filter_map(own).collect()
    }

    /// True for a server at a URL: nothing may be done to it but to offer it a load.
    pub(crate) fn is_theirs(&self) -> bool {
        self.address.is_some() && self.product.has_server()
    }

    /// The stores that it consists of: one, or those of its backend in their order.
    pub fn products(&self) -> &[Product] {
        match self.backend {
            Some(backend) => backend.products(),
            None => std::slice::from_ref(&self.product),
        }
    }

    /// Settings of one of its private servers, as that server spells them.
    pub fn settings_of(&self, product: Product) -> BTreeMap<String, String> {
        if self.backend.is_none() {
            return self.settings.clone();
        }
        let own = |(key, value): (&String, &String)| {
            let name = key.strip_prefix(product.name())?.strip_prefix('.')?;
            Some((name.to_string(), value.clone()))
        };
        self.settings.iter().filter_map(own).collect()
    }
}

/// Whether values are drawn inside the timed span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Generation {
    /// Drawn before the clock starts; neither latency nor rate contains it.
    #[default]
    Outside,
    /// Drawn after the clock started, as the 2019 script did.
    Inside,
}

/// What software's layout a workload uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// One key, row or file a session; plain write, read, replace.
    #[default]
    Plain,
    /// A shop's page: open with the lock of the real session handler, read, think, write, close.
    Page,
}

/// When connections are made, and by which calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// One connection a client, kept; statements prepared once.
    #[default]
    Persistent,
    /// As the 2019 script: MySQL connects for every operation, Redis keeps its connection, and
    /// files are read and written by the system calls of PHP's functions.
    #[serde(rename = "as-2019")]
    As2019,
}

/// How sessions are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Names {
    /// `<client>_<index>`, client from 1, index from 0, as the 2019 script.
    Counter,
    /// 32 hexadecimal characters, as PHP's default session ids.
    #[default]
    Hex,
}

/// In which order existing sessions are visited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// One after the other, as they were created.
    Sequential,
    /// Uniformly at random among the client's own.
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
    /// When connections are made, and by which calls.
    pub connections: Connections,
    /// How sessions are named.
    pub names: Names,
    /// Order of visits to existing sessions.
    pub order: Order,
    /// Whether values are drawn inside the timed span.
    pub generation: Generation,
    /// Sessions that exist before the first phase, over all clients; 0 when the phases make them.
    pub filled: u64,
    /// Bytes of a session's value.
    pub value_bytes: usize,
    /// Lifetime of a session in seconds.
    pub ttl_s: u64,
    /// One in this many values read is compared byte by byte; length is always checked.
    pub verify_one_in: u64,
    /// Pause between reading and writing a page's session, in nanoseconds.
    pub think_ns: u64,
    /// Measured phases, in order.
    pub phases: Vec<Phase>,
}

/// The key-value workload of one cell, spelled as users spell it: the room that draws operations
/// reads these texts, and has read them before a plan is made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kv {
    /// Name of the workload in results, for example `ycsb-b`.
    pub profile: String,
    /// Name and command of each operation; the command as a client of the product spells it.
    pub operations: Vec<KvOperation>,
    /// Keys that operations choose from.
    pub keys: u64,
    /// How often each is chosen: `uniform`, `zipf:0.99`, …
    pub distribution: String,
    /// What every key's name begins with, before the run's own prefix.
    pub key_prefix: String,
    /// Bytes of a key's name; `None` for the prefix and twelve digits, `uuid` for the prefix and a
    /// UUID.
    pub key_bytes: Option<String>,
    /// Bytes of a value: `1024`, `64-4096`, `etc`, …; `json` for the JSON object of a user, whose
    /// names are UUIDs.
    pub value_bytes: String,
    /// Lifetime of all that is written in seconds; 0 for none, or where each has its own.
    pub ttl_s: u64,
    /// Share of the keys that exist before the first phase, 0 to 1.
    pub filled_share: f64,
    /// One in this many values read is compared byte by byte; length is always checked.
    pub verify_one_in: u64,
    /// Threads of the generator.
    pub threads: u32,
    /// Pause of a client between its replies and its next operations, nanoseconds.
    pub think_ns: u64,
    /// True where each pause is drawn evenly from 0 to `think_ns`, and the first comes before a
    /// client's first operation.
    pub think_is_drawn: bool,
    /// True where operations follow each other on one key, in their order: what is offered is the
    /// first, and its client sends each next one when the one before is answered well.
    pub follows: bool,
    /// What its private server may take of memory; `None` for no limit.
    pub memory: Option<MemoryPlan>,
    /// Measured phases, in order.
    pub phases: Vec<Phase>,
    /// What is done to the target meanwhile, by time within each phase.
    pub actions: Vec<Action>,
    /// Time after which a trial ends with what it has, counted from when its store was ready; 0 for
    /// no limit.
    pub deadline_ns: u64,
}

impl Kv {
    /// Operations of a phase that come of each one that is paced: those that follow it, and itself.
    pub fn operations_of_one_paced(&self, phase: &Phase) -> usize {
        let all = if self.follows { self.operations.len() } else { 1 };
        phase.control.as_ref().map_or(all, |control| control.sequence.len()).max(1)
    }
}

/// One kind of key-value operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KvOperation {
    /// Name in results: `get`, `set`, or the first word of the command.
    pub name: String,
    /// The command with its holes; `None` for what the product spells for this name.
    pub command: Option<String>,
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
}

impl Workload {
    /// How its data lie in a store: keys and values as sessions do in the plain layout, each under
    /// its name.
    pub fn layout(&self) -> Layout {
        match self {
            Self::Sessions(sessions) => sessions.layout,
            Self::Kv(_) | Self::AppCache(_) => Layout::Plain,
        }
    }

    /// Name of the profile in results.
    pub fn profile(&self) -> &str {
        match self {
            Self::Sessions(sessions) => &sessions.profile,
            Self::Kv(kv) => &kv.profile,
            Self::AppCache(cache) => &cache.profile,
        }
    }

    /// Name of the study's profile: that of the results, without the size where there are several.
    pub fn study_profile(&self) -> &str {
        match self {
            Self::AppCache(cache) => cache.sizes_of.as_deref().unwrap_or(&cache.profile),
            other => other.profile(),
        }
    }

    /// Measured phases, in order.
    pub fn phases(&self) -> &[Phase] {
        match self {
            Self::Sessions(sessions) => &sessions.phases,
            Self::Kv(kv) => &kv.phases,
            Self::AppCache(cache) => &cache.phases,
        }
    }

    /// True for the pages of a shop, whose calls lock their session.
    pub fn is_page(&self) -> bool {
        matches!(self, Self::Sessions(sessions) if sessions.layout == Layout::Page)
    }

    /// Whether values are drawn inside the timed span.
    pub fn generation(&self) -> Generation {
        match self {
            Self::Sessions(sessions) => sessions.generation,
            Self::Kv(_) | Self::AppCache(_) => Generation::Outside,
        }
    }

    /// True where a key that is not there is no fault: it was not filled, its lifetime is over, or
    /// an operation may have removed it.
    pub fn misses_are_planned(&self) -> bool {
        let keeping = ["get", "set", "insert", "rmw"];
        let keeps = |o: &KvOperation| o.command.is_none() && keeping.contains(&&*o.name);
        match self {
            Self::Sessions(_) => false,
            Self::Kv(kv) => kv.filled_share < 1.0 || !kv.operations.iter().all(keeps),
            Self::AppCache(_) => true,
        }
    }

    /// What the private servers may take of memory; `None` for no limit.
    pub fn memory(&self) -> Option<MemoryPlan> {
        match self {
            Self::Sessions(_) => None,
            Self::Kv(kv) => kv.memory,
            Self::AppCache(cache) => cache.memory,
        }
    }

    /// What is done to the target meanwhile.
    pub fn actions(&self) -> &[Action] {
        match self {
            Self::Sessions(_) | Self::AppCache(_) => &[],
            Self::Kv(kv) => &kv.actions,
        }
    }

    /// True where the plan takes service away, or memory: that something fails is then an answer.
    pub fn may_fail(&self) -> bool {
        self.actions().iter().any(|action| action.what.takes_service_away())
            || self.memory().is_some_and(|memory| memory.swap_bytes > 0)
    }

    /// True where a save may be the copy for a replica that attaches again: the plan takes servers
    /// away, and asks for no save.
    pub fn saves_may_be_resyncs(&self) -> bool {
        self.actions().iter().any(|action| action.what.takes_service_away())
            && !self.actions().iter().any(|action| action.what == Act::Save)
    }

    /// True where the amount of data is what is measured: a store that evicts holds less of it.
    pub fn needs_all_data(&self) -> bool {
        matches!(self, Self::Kv(kv) if kv.memory.is_some())
    }

    /// Whether that load can be offered. Errors: what was expected.
    pub fn supports(&self, load: &Load) -> Result<(), &'static str> {
        match (self, load) {
            (Self::Kv(_), _) => Ok(()),
            (_, Load { pipeline: 1, .. }) if !load.is_planned() && !load.is_staged() => Ok(()),
            _ => Err("clients that each wait for their reply, all of them all the time"),
        }
    }

    /// Lifetime of what is written in seconds; 0 for none.
    pub fn ttl_s(&self) -> u64 {
        match self {
            Self::Sessions(sessions) => sessions.ttl_s,
            Self::Kv(kv) => kv.ttl_s,
            Self::AppCache(_) => 0,
        }
    }
}

/// Target × workload × load: one thing to measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Unique in the plan: `<target>/<profile>/<clients>` and `-one` for one session; of a profile
    /// with sizes `<target>/<profile>/<size>/<clients>`.
    pub id: String,
    /// Name of a planned target.
    pub target: String,
    /// Operations on data.
    pub workload: Workload,
    /// How they are offered.
    pub load: Load,
}

impl Cell {
    /// Threads of its generator, at least 1: an event loop's, else one for each client.
    pub fn threads(&self) -> u32 {
        let threads = match &self.workload {
            Workload::Sessions(_) | Workload::AppCache(_) => self.load.clients,
            Workload::Kv(kv) => kv.threads,
        };
        threads.max(1)
    }
}

/// When a run has measured enough.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effort {
    /// Wall time for all blocks, which are as many as fit if all last as long as the first. 0 for
    /// no limit.
    pub budget_ns: u64,
    /// Blocks measured whatever the budget says.
    pub blocks_min: u32,
    /// Blocks after which no more are added.
    pub blocks_max: u32,
}

/// Everything a run will do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Name of the study.
    pub study: String,
    /// Its title for people.
    pub title: String,
    /// The question it answers.
    pub question: String,
    /// Where the study comes from.
    pub source: String,
    /// How much is measured.
    pub scale: Scale,
    /// Profiles chosen.
    pub profiles: Vec<String>,
    /// Seed of order, keys and values.
    pub seed: u64,
    /// When enough was measured.
    pub effort: Effort,
    /// Ratios within `1/(1+zone)` and `1+zone` count as equal.
    pub equivalence_zone: f64,
    /// Nanoseconds after which an unanswered operation counts as timed out.
    pub timeout_ns: u64,
    /// Stores under test.
    pub targets: Vec<PlannedTarget>,
    /// All cells; each block runs every one once.
    pub cells: Vec<Cell>,
    /// Statements to judge.
    pub claims: Vec<Claim>,
    /// The recommendation table.
    pub advice: Option<Advice>,
    /// What every result is required to meet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<Requirement>,
    /// What the 99th percentile of a ramp's stage may be at most, nanoseconds, where the highest
    /// rate within a limit is told; `None` for no limit.
    pub limit_ns: Option<u64>,
}

impl Plan {
    /// The planned target of that name.
    pub fn target(&self, name: &str) -> Option<&PlannedTarget> {
        self.targets.iter().find(|t| t.name == name)
    }

    /// The probe that follows in a trial whose load is a search; `None` when that is over, and
    /// where it failed or has another load.
    pub fn next_probe(&self, trial: &Trial) -> Option<Step> {
        let cell = self.cells.iter().find(|cell| cell.id == trial.cell)?;
        let search = cell.load.search().filter(|_| trial.failure.is_none())?;
        search.next((self.seed, trial.block), &trial.points)
    }

    /// The layouts in which data of a target lie; the plain one where it has no cell, as in a
    /// search that was killed at once.
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
            Workload::Sessions(_) | Workload::Kv(_) => None,
        })
    }

    /// The files that records and lists are read from; `None` where they are drawn.
    pub fn files(&self) -> Option<&DataFiles> {
        self.caches().find_map(|(_, cache)| cache.files.as_ref())
    }
}

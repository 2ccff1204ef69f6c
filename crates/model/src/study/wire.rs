//! A study as it is written in TOML. Field comments here are the reference of the format.

use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

use super::ramp::{LatencyLimit, Pace, StageOrder};
use super::statements::{Advice, Claim};
use super::{StudyError, keys};
use crate::app_cache::{Backend, DataSize, Fill};
use crate::memory::{MemoryLimit, PageCache};
use crate::plan::{Connections, Generation, Layout, Names, Order, Product, Scale};
use crate::program::Program;

/// Version of the study format that this code reads.
pub const STUDY_FORMAT: u32 = 1;

/// Operations of the plain layout.
pub const PLAIN_OPERATIONS: [&str; 3] = ["write", "read", "change"];
/// Operations of the page layout.
pub const PAGE_OPERATIONS: [&str; 1] = ["page"];
/// Operations of an application cache.
pub const CACHE_OPERATIONS: [&str; 3] = ["read", "write", "clean"];

/// Operations of a ramp, in the order in which they follow each other.
pub const RAMP_OPERATIONS: [&str; 2] = ["set", "get"];

/// What a study's stores are used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StudyWorkload {
    /// Sessions of a shop.
    #[default]
    Sessions,
    /// The application cache of a shop: records with tags.
    AppCache,
    /// Keys and values under a load that is raised until the store breaks.
    Ramp,
}

impl StudyWorkload {
    /// As studies write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::AppCache => "app-cache",
            Self::Ramp => "ramp",
        }
    }
}

/// A study file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// [`STUDY_FORMAT`].
    pub format: u32,
    /// Name that users type: lower-case letters, digits and `-`.
    pub name: String,
    /// What the stores are used for. It decides which of the keys below must stand in the file:
    /// each says where it is of one workload alone, and holds nothing of use in another.
    #[serde(default)]
    pub workload: StudyWorkload,
    /// Title for people.
    pub title: String,
    /// The question it answers.
    pub question: String,
    /// Where it comes from.
    pub source: String,
    /// Target that `--aa` measures twice.
    pub control: Spanned<String>,
    /// Values that `--set` can replace.
    pub defaults: Defaults,
    /// How much is measured, by scale.
    pub scales: BTreeMap<Scale, ScaleSize>,
    /// Stores under test.
    pub targets: Vec<StudyTarget>,
    /// Kinds of use.
    pub profiles: Vec<Profile>,
    /// Statements to judge.
    #[serde(default)]
    pub claims: Vec<Spanned<Claim>>,
    /// The recommendation table.
    pub advice: Option<Spanned<Advice>>,
    /// File name for errors; set by [`Study::parse`].
    #[serde(skip)]
    pub file: String,
}

/// Values that `--set` can replace.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// Profiles that run when none is chosen.
    pub profile: Spanned<Vec<String>>,
    /// Sessions: bytes of a value. Ramp: the same; 0, where it is left out, is the JSON object of a
    /// user, which has 148.
    #[serde(default)]
    pub value_bytes: usize,
    /// Sessions and ramp: lifetime of what is written in seconds.
    #[serde(default)]
    pub ttl_s: u64,
    /// Numbers of parallel clients; each is a load. Of a ramp those of profiles of pace `open`.
    pub clients: Vec<u32>,
    /// Sessions: whether values are drawn inside the timed span.
    #[serde(default)]
    pub generation: Generation,
    /// Sessions: pause within a page, milliseconds. Ramp: longest pause of a client before its set,
    /// in profiles of pace `clients`; each is drawn evenly from 0 to it.
    #[serde(default)]
    pub think_ms: f64,
    /// Ramp: what the 99th percentile may be at most where the highest rate within a limit is told,
    /// a time such as `1ms`.
    pub limit: Option<LatencyLimit>,
    /// Ramp: the order in which the rates of a profile of pace `open` come.
    #[serde(default)]
    pub order: StageOrder,
    /// Ramp: threads of the generator.
    #[serde(default = "one_thread")]
    pub threads: u32,
    /// Application cache: tags that records choose from.
    #[serde(default)]
    pub tags: u64,
    /// Application cache: fewest tags of a record.
    #[serde(default)]
    pub min_tags: u64,
    /// Application cache: most tags of a record.
    #[serde(default)]
    pub max_tags: u64,
    /// Application cache: fewest bytes of a record.
    #[serde(default)]
    pub min_rec_size: u64,
    /// Application cache: most bytes of a record.
    #[serde(default)]
    pub max_rec_size: u64,
    /// Application cache: one in this many operations plus one is a write, where it is no clean.
    #[serde(default)]
    pub write_chance: u64,
    /// Application cache: one in this many operations plus one is a clean.
    #[serde(default)]
    pub clean_chance: u64,
    /// Application cache: whether what Magento puts before a backend is part of it.
    #[serde(default)]
    pub magento: bool,
    /// Application cache: how the records are saved before the first phase.
    #[serde(default)]
    pub fill: Fill,
    /// Application cache: memory limit of the targets; none where it is left out.
    pub memory_limit: Option<MemoryLimit>,
    /// One in this many values read is compared byte by byte.
    pub verify_one_in: u64,
    /// Ratios within `1/(1+zone)` and `1+zone` count as equal.
    pub equivalence_zone: f64,
    /// Time-out of an operation, milliseconds.
    pub timeout_ms: u64,
}

/// How much is measured.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScaleSize {
    /// Seconds for all blocks; 0 for no limit.
    pub budget_s: f64,
    /// Blocks measured whatever the budget says.
    pub blocks_min: u32,
    /// Blocks after which no more are added.
    pub blocks_max: u32,
    /// Sessions: those that exist in time-bounded profiles, over all clients; those that each
    /// client makes in count-bounded ones.
    #[serde(default)]
    pub sessions: u64,
    /// Application cache: records of the data set. Ramp: keys that are written one after the other,
    /// and then anew.
    #[serde(default)]
    pub keys: u64,
    /// Application cache: operations of each client in count-bounded profiles.
    #[serde(default)]
    pub ops: u64,
    /// Ramp: length of a stage, milliseconds.
    #[serde(default)]
    pub stage_ms: u64,
    /// Ramp: number of stages in profiles of pace `clients`.
    #[serde(default)]
    pub stages: u32,
    /// Ramp: by how many clients each group grows from one of them to the next.
    #[serde(default)]
    pub step: u32,
    /// Unrecorded milliseconds before a time-bounded phase.
    pub warmup_ms: u64,
    /// Measured milliseconds of a time-bounded phase of length 1, and of a ramp's phase `peak`.
    pub measure_ms: u64,
}

/// A store under test.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyTarget {
    /// Name in this study.
    pub name: Spanned<String>,
    /// Sessions and ramp: kind of store.
    pub product: Option<Product>,
    /// Sessions and ramp: the program that is started in place of the product's own server.
    pub program: Option<Program>,
    /// Application cache: the software whose layout it is.
    pub backend: Option<Backend>,
    /// Server settings as its configuration file spells them; of an application cache with the
    /// product before them: `redis.save`.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// True where it is measured only when it is named.
    #[serde(default)]
    pub on_request: bool,
}

impl StudyTarget {
    /// The first of its stores: the product, or the first one of its backend.
    pub fn product(&self) -> Product {
        let of_backend = self.backend.and_then(|b| b.products().first());
        self.product.or(of_backend.copied()).unwrap_or(Product::Files)
    }
}

/// A kind of use.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Name that users type.
    pub name: Spanned<String>,
    /// What it stands for.
    pub about: String,
    /// Sessions: layout of keys, files and rows.
    #[serde(default)]
    pub layout: Layout,
    /// Sessions: when connections are made.
    #[serde(default)]
    pub connections: Connections,
    /// Sessions: how sessions are named.
    #[serde(default)]
    pub names: Names,
    /// Sessions: order of visits to existing sessions.
    #[serde(default)]
    pub order: Order,
    /// Sessions and application cache: how phases end.
    #[serde(default)]
    pub stop: StopKind,
    /// Sessions: true to add a load in which all clients ask for one session.
    #[serde(default)]
    pub one_session: bool,
    /// Application cache: true for the lists, popularity and quirks of the original benchmark.
    #[serde(default)]
    pub as_original: bool,
    /// Application cache: data sets that are measured one by one, instead of the one of `keys` and
    /// `tags`; for every scale of the study, or none.
    #[serde(default)]
    pub sizes: BTreeMap<Scale, Spanned<Vec<DataSize>>>,
    /// Application cache: whether the page cache is emptied before each phase.
    #[serde(default)]
    pub page_cache: PageCache,
    /// Ramp: what is raised from stage to stage.
    #[serde(default)]
    pub pace: Pace,
    /// Ramp of pace `open`: rates on the way up, in thousandths of the rate that the store reaches
    /// by itself.
    pub permille: Option<Spanned<Vec<u32>>>,
    /// Ramp of pace `clients`: groups of clients, which all grow alike.
    pub groups: Option<Spanned<u32>>,
    /// Ramp: where it is given, phases before the ramp show what an operation takes apart from its
    /// place in a pair, at this share of the peak (pace `clients`: of the most clients), in
    /// thousandths. Each is as long as a stage.
    pub control_permille: Option<Spanned<u32>>,
    /// Sessions and application cache: measured phases.
    #[serde(default)]
    pub phases: Vec<StudyPhase>,
}

/// How a profile's phases end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StopKind {
    /// After `measure_ms`, on sessions filled beforehand.
    #[default]
    Time,
    /// After `sessions` or `ops` operations of each client; sessions are made by the first phase.
    Count,
}

/// A measured phase.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyPhase {
    /// Name of the phase.
    pub name: String,
    /// Operations and weights; empty where the original's list decides.
    pub mix: Spanned<BTreeMap<String, f64>>,
    /// Duration in units of the scale's `measure_ms`.
    #[serde(default = "one")]
    pub length: f64,
}

fn one() -> f64 {
    1.0
}

fn one_thread() -> u32 {
    1
}

/// The key of the first text with a character that would do something to a terminal.
fn controlled(key: &str, value: &toml::Value) -> Option<String> {
    let bad = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    match value {
        toml::Value::String(text) => text.contains(bad).then(|| key.to_string()),
        toml::Value::Table(table) => table.iter().find_map(|(key, value)| controlled(key, value)),
        toml::Value::Array(values) => values.iter().find_map(|value| controlled(key, value)),
        _ => None,
    }
}

impl Study {
    /// Reads and checks a study; `file` is its name for errors.
    pub fn parse(file: &str, text: &str) -> Result<Self, StudyError> {
        let at = |offset: usize, problem: String| StudyError::Located {
            file: file.into(),
            line: text.get(..offset).unwrap_or(text).lines().count().max(1),
            problem,
        };
        let mut study: Self = toml::from_str(text)
            .map_err(|e| at(e.span().map_or(0, |s| s.start + 1), e.message().trim().into()))?;
        study.file = file.into();
        let table: toml::Table = toml::from_str(text).map_err(|e| at(0, e.to_string()))?;
        if let Some(key) = controlled("", &toml::Value::Table(table)) {
            let problem = format!("`{key}` holds a control character (expected plain text)");
            return Err(at(text.find(&key).unwrap_or(0) + 1, problem));
        }
        let fault = keys::fault(text, study.workload).or_else(|| study.first_fault());
        match fault {
            None => Ok(study),
            Some((offset, problem)) => Err(at(offset + 1, problem)),
        }
    }

    /// Names of the targets.
    pub fn target_names(&self) -> impl Iterator<Item = &str> {
        self.targets.iter().map(|t| t.name.get_ref().as_str())
    }

    /// The target of that name.
    pub fn target(&self, name: &str) -> Option<&StudyTarget> {
        self.targets.iter().find(|t| t.name.get_ref() == name)
    }

    /// Names of the profiles.
    pub fn profile_names(&self) -> impl Iterator<Item = &str> {
        self.profiles.iter().map(|p| p.name.get_ref().as_str())
    }
}

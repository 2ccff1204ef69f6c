//! A study as it is written in TOML. Field comments here are the reference of the format.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use toml::Spanned;

use super::{StudyError, quoted_list};
use crate::plan::{Connections, Generation, Layout, Names, Order, Product, Scale};

/// Version of the study format that this code reads.
pub const STUDY_FORMAT: u32 = 1;

/// Operations of the plain layout.
pub const PLAIN_OPERATIONS: [&str; 3] = ["write", "read", "change"];
/// Operations of the page layout.
pub const PAGE_OPERATIONS: [&str; 1] = ["page"];

/// A study file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// [`STUDY_FORMAT`].
    pub format: u32,
    /// Name that users type: lower-case letters, digits and `-`.
    pub name: String,
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
    /// Bytes of a session's value.
    pub value_bytes: usize,
    /// Lifetime of a session in seconds.
    pub ttl_s: u64,
    /// Numbers of parallel clients; each is a load.
    pub clients: Vec<u32>,
    /// Whether values are drawn inside the timed span.
    pub generation: Generation,
    /// Pause within a page, milliseconds.
    pub think_ms: f64,
    /// One in this many values read is compared byte by byte.
    pub verify_one_in: u64,
    /// Ratios within `1/(1+zone)` and `1+zone` count as equal.
    pub equivalence_zone: f64,
    /// Half-width of the interval that every rate should reach.
    pub half_width_goal: f64,
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
    /// Sessions that exist in time-bounded profiles, over all clients; sessions that each client
    /// makes in count-bounded ones.
    pub sessions: u64,
    /// Unrecorded milliseconds before a time-bounded phase.
    pub warmup_ms: u64,
    /// Measured milliseconds of a time-bounded phase of length 1.
    pub measure_ms: u64,
}

/// A store under test.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyTarget {
    /// Name in this study.
    pub name: Spanned<String>,
    /// Kind of store.
    pub product: Product,
    /// Server settings as its configuration file spells them.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
}

/// A kind of use.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Name that users type.
    pub name: Spanned<String>,
    /// What it stands for.
    pub about: String,
    /// Layout of keys, files and rows.
    pub layout: Layout,
    /// When connections are made.
    pub connections: Connections,
    /// How sessions are named.
    pub names: Names,
    /// Order of visits to existing sessions.
    pub order: Order,
    /// How phases end.
    pub stop: StopKind,
    /// True to add a load in which all clients ask for one session.
    #[serde(default)]
    pub one_session: bool,
    /// Measured phases.
    pub phases: Vec<StudyPhase>,
}

/// How a profile's phases end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StopKind {
    /// After `measure_ms`, on sessions filled beforehand.
    Time,
    /// After `sessions` operations of each client, on sessions that the first phase makes.
    Count,
}

/// A measured phase.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyPhase {
    /// Name of the phase.
    pub name: String,
    /// Operations and weights.
    pub mix: Spanned<BTreeMap<String, f64>>,
    /// Duration in units of the scale's `measure_ms`.
    #[serde(default = "one")]
    pub length: f64,
}

fn one() -> f64 {
    1.0
}

/// A statement with the relation it expects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Unique in the study.
    pub id: String,
    /// The statement, in words.
    pub text: String,
    /// Who said it where.
    pub source: String,
    /// The relation that it expects.
    pub expect: Expectation,
}

/// The relation that a claim expects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Expectation {
    /// The rate of `a` divided by the rate of `b` lies within `min` and `max`.
    Ratio {
        /// Target above the line.
        a: String,
        /// Target below the line.
        b: String,
        /// Operation compared.
        operation: String,
        /// Clients at work.
        clients: u32,
        /// Smallest ratio that still confirms the statement.
        min: f64,
        /// Largest ratio that still confirms it; absent for no upper end.
        max: Option<f64>,
    },
    /// The rate of `target` is below that of every other target in every case.
    Lowest {
        /// The target said to be last.
        target: String,
        /// Operations looked at.
        operations: Vec<String>,
        /// Numbers of clients looked at.
        clients: Vec<u32>,
    },
}

/// The recommendation table of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Advice {
    /// How much each operation counts in a shop's day; need not sum to 1.
    pub weights: BTreeMap<String, f64>,
    /// Number of concurrent requests that each size of shop means.
    pub sizes: BTreeMap<String, u32>,
    /// Rows of the table.
    pub rows: Vec<AdviceRow>,
}

/// A row of the recommendation table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdviceRow {
    /// Shop system.
    pub shop: String,
    /// A key of `sizes`.
    pub size: String,
    /// Target that the shop uses as delivered.
    pub factory: String,
    /// Target that the source recommends.
    pub source: String,
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
        match study.first_fault() {
            None => Ok(study),
            Some((offset, problem)) => Err(at(offset + 1, problem)),
        }
    }

    /// Names of the targets.
    pub fn target_names(&self) -> impl Iterator<Item = &str> {
        self.targets.iter().map(|t| t.name.get_ref().as_str())
    }

    /// Names of the profiles.
    pub fn profile_names(&self) -> impl Iterator<Item = &str> {
        self.profiles.iter().map(|p| p.name.get_ref().as_str())
    }

    /// Byte offset and text of the first thing that parses but makes no sense.
    fn first_fault(&self) -> Option<(usize, String)> {
        if self.format != STUDY_FORMAT {
            let problem = format!("format `{}` (this version reads {STUDY_FORMAT})", self.format);
            return Some((0, problem));
        }
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.name.is_empty() || !self.name.chars().all(good) {
            let expected = "lower-case letters, digits and `-`";
            return Some((0, format!("name `{}` is no name (expected {expected})", self.name)));
        }
        self.fault_in_names()
            .or_else(|| self.profiles.iter().find_map(fault_in_profile))
            .or_else(|| self.claims.iter().find_map(|c| self.fault_in_claim(c)))
            .or_else(|| self.advice.as_ref().and_then(|a| self.fault_in_advice(a)))
    }

    fn fault_in_names(&self) -> Option<(usize, String)> {
        if self.targets.is_empty() || self.profiles.is_empty() {
            return Some((0, "a study needs at least one target and one profile".into()));
        }
        let names = |names: Vec<&Spanned<String>>, what: &str| {
            names.iter().enumerate().find_map(|(i, name)| {
                let twice = names[..i].iter().any(|n| n.get_ref() == name.get_ref());
                twice.then(|| (name.span().start, format!("{what} `{}` twice", name.get_ref())))
            })
        };
        let unfit = self.targets.iter().find(|t| !t.product.keeps_sessions()).map(|t| {
            let (name, product) = (t.name.get_ref(), t.product.name());
            (t.name.span().start, format!("target `{name}`: {product} keeps no sessions"))
        });
        unfit
            .or_else(|| names(self.targets.iter().map(|t| &t.name).collect(), "target"))
            .or_else(|| names(self.profiles.iter().map(|p| &p.name).collect(), "profile"))
            .or_else(|| self.unknown_target(self.control.get_ref(), self.control.span().start))
            .or_else(|| {
                let chosen = self.defaults.profile.get_ref();
                let name = chosen.iter().find(|c| !self.profile_names().any(|p| p == *c))?;
                let known = quoted_list(self.profile_names());
                let problem = format!("unknown profile `{name}` (known: {known})");
                Some((self.defaults.profile.span().start, problem))
            })
    }

    fn unknown_target(&self, name: &str, offset: usize) -> Option<(usize, String)> {
        if self.target_names().any(|t| t == name) {
            return None;
        }
        let known = quoted_list(self.target_names());
        Some((offset, format!("unknown target `{name}` (known: {known})")))
    }

    fn fault_in_claim(&self, claim: &Spanned<Claim>) -> Option<(usize, String)> {
        let offset = claim.span().start;
        let unknown_operation = |operation: &str| {
            let fault = !PLAIN_OPERATIONS.contains(&operation) && operation != "mixed";
            fault.then(|| (offset, unknown_operation(operation, &PLAIN_OPERATIONS)))
        };
        match &claim.get_ref().expect {
            Expectation::Ratio { a, b, operation, min, max, .. } => self
                .unknown_target(a, offset)
                .or_else(|| self.unknown_target(b, offset))
                .or_else(|| unknown_operation(operation))
                .or_else(|| {
                    let fault = *min < 0.0 || max.is_some_and(|max| max < *min);
                    fault.then(|| (offset, format!("ratio from {min} to {max:?} is no range")))
                }),
            Expectation::Lowest { target, operations, .. } => self
                .unknown_target(target, offset)
                .or_else(|| operations.iter().find_map(|o| unknown_operation(o))),
        }
    }

    fn fault_in_advice(&self, advice: &Spanned<Advice>) -> Option<(usize, String)> {
        let offset = advice.span().start;
        let table = advice.get_ref();
        table.rows.iter().find_map(|row| {
            if !table.sizes.contains_key(&row.size) {
                let known = quoted_list(table.sizes.keys().map(String::as_str));
                return Some((offset, format!("unknown size `{}` (known: {known})", row.size)));
            }
            self.unknown_target(&row.factory, offset)
                .or_else(|| self.unknown_target(&row.source, offset))
        })
    }
}

fn unknown_operation(operation: &str, known: &[&str]) -> String {
    format!("unknown operation `{operation}` (known: {})", quoted_list(known.iter().copied()))
}

fn fault_in_profile(profile: &Profile) -> Option<(usize, String)> {
    let known: &[&str] = match profile.layout {
        Layout::Plain => &PLAIN_OPERATIONS,
        Layout::Page => &PAGE_OPERATIONS,
    };
    profile.phases.iter().find_map(|phase| {
        let offset = phase.mix.span().start;
        let mix = phase.mix.get_ref();
        if let Some(name) = mix.keys().find(|o| !known.contains(&o.as_str())) {
            return Some((offset, unknown_operation(name, known)));
        }
        let weights_fault = mix.is_empty() || mix.values().any(|w| !w.is_finite() || *w <= 0.0);
        weights_fault.then(|| (offset, "weights of a mix must be above 0".into()))
    })
}

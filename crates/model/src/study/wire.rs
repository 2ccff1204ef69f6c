//! The TOML format of studies, as shared by all workloads. Field comments here and in the
//! modules of workloads are the reference of the format.

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::advice::Advice;
use super::choices::unlabelled;
use super::claims::Claim;
use super::published::{PublishedFigure, PublishedTable};
use super::source::Source;
use super::{Fault, StudyError};
use crate::app_cache::{Backend, Magento};
use crate::plan::Scale;
use crate::product::Product;
use crate::program::Program;
use crate::tier::Tier;

/// Version of the study format that this code reads.
pub const STUDY_FORMAT: u32 = 1;

/// Use of a study's stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StudyWorkload {
    /// Sessions of a shop.
    Sessions,
    /// The application cache of a shop: records with tags.
    AppCache,
    /// Keys and values under a load that is raised until the store breaks.
    Ramp,
    /// Keys and values, also more than fit into memory, and the cost of a save.
    Kv,
    /// Keys and values on a primary that is killed.
    Failover,
    /// Rows of a database, read through a cache.
    CacheAside,
}

/// A study file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// [`STUDY_FORMAT`].
    pub format: u32,
    /// Name on the command line: lower-case letters, digits and `-`.
    pub name: String,
    /// Use of the stores. It determines the keys of `defaults`, of `size` and of profiles.
    pub workload: StudyWorkload,
    /// Title in reports.
    pub title: String,
    /// Question that the study answers.
    pub question: String,
    /// Source of the study.
    pub source: Source,
    /// Target that `--aa` measures twice.
    pub control: Spanned<String>,
    /// Profiles that run by default.
    pub profile: Spanned<Vec<String>>,
    /// Numbers of parallel clients; each is a load. For ramps, used by profiles of pace `open`.
    pub clients: Vec<u32>,
    /// One in this many values read is compared byte by byte.
    pub verify_one_in: u64,
    /// Ratios within `1/(1+zone)` and `1+zone` count as equal.
    pub equivalence_zone: f64,
    /// Timeout of an operation, milliseconds.
    pub timeout_ms: u64,
    /// Amount of measurement, by scale.
    pub scales: BTreeMap<Scale, StudyScale>,
    /// Tiers that targets can have.
    #[serde(default)]
    pub tiers: Vec<StudyTier>,
    /// Stores under test.
    pub targets: Vec<StudyTarget>,
    /// Usage patterns.
    pub profiles: Vec<StudyProfile>,
    /// Tables of the source.
    #[serde(default)]
    pub tables: Vec<Spanned<PublishedTable>>,
    /// Statements to judge.
    #[serde(default)]
    pub claims: Vec<Spanned<Claim>>,
    /// The recommendation table.
    pub advice: Option<Spanned<Advice>>,
    /// Its text, in which the workload finds `[defaults]`; set by [`Study::parse`].
    #[serde(rename = "defaults")]
    file: File,
}

/// The file of a study.
#[derive(Clone, Debug, Default)]
struct File {
    /// File name for errors.
    name: String,
    /// Its text, from which each plan reads the keys of its workload.
    text: String,
}

/// Accepts anything: the text is read again.
impl<'de> Deserialize<'de> for File {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(from).map(|_| Self::default())
    }
}

/// Amount of measurement at one scale.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyScale {
    /// Profiles that run by default, in place of the study's.
    #[serde(default)]
    pub profile: Option<Spanned<Vec<String>>>,
    /// Seconds for all blocks; 0 for no limit.
    pub budget_s: f64,
    /// Minimum number of blocks, regardless of the budget.
    pub blocks_min: u32,
    /// Maximum number of blocks.
    pub blocks_max: u32,
    /// Unrecorded milliseconds before a time-bounded phase.
    pub warmup_ms: u64,
    /// Measured milliseconds of a time-bounded phase of length 1, and of a ramp's phase `peak`.
    pub measure_ms: u64,
    #[serde(rename = "size")]
    _size: IgnoredAny,
}

/// The scales at which a profile runs by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefaultScales {
    /// At none.
    None,
    /// At these, in ascending order.
    Some(Vec<Scale>),
    /// At all.
    All,
}

/// Limits that a study names.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyTier {
    /// Name in this study, for targets.
    pub name: Spanned<String>,
    /// What it stands for, and how its limits follow from that.
    #[serde(rename = "about")]
    _about: String,
    /// The limits.
    pub limits: Tier,
}

/// A store under test.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyTarget {
    /// Name in this study.
    pub name: Spanned<String>,
    /// Kind of store, unless it is a backend.
    pub product: Option<Product>,
    /// Program to start instead of the product's own server.
    pub program: Option<Program>,
    /// For application caches: the software whose layout is used.
    pub backend: Option<Backend>,
    /// For databases: the cache in front of it.
    pub cache: Option<Product>,
    /// Server settings as in its configuration file; for a backend, and for a database behind a
    /// cache, with the product as prefix: `redis.save`.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Name of the tier whose limits its private server gets.
    pub tier: Option<Spanned<String>>,
    /// The source's figure for it, shown beside the measured one.
    pub published: Option<Spanned<PublishedFigure>>,
    /// True if the target is measured only when named, by the user or by a chosen profile.
    #[serde(default)]
    pub on_request: bool,
    /// For application caches: Magento's layer above the backend, in place of the study's.
    pub magento: Option<Magento>,
}

impl StudyTarget {
    /// Its first store: the product, or the first product of its backend.
    pub fn product(&self) -> Product {
        let of_backend = self.backend.and_then(|b| b.products().first());
        self.product.or(of_backend.copied()).unwrap_or(Product::Files)
    }
}

/// Name and description of a profile; the workload parses its other keys.
#[derive(Clone, Debug, Deserialize)]
pub struct StudyProfile {
    /// Name on the command line.
    pub name: Spanned<String>,
    /// Description.
    pub about: String,
}

/// Finds the first text with a control character, which could manipulate a terminal.
fn control_character(key: &str, value: &Spanned<DeValue<'_>>) -> Option<Fault> {
    let bad = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    match value.get_ref() {
        DeValue::String(text) => text.contains(bad).then(|| {
            let problem = format!("`{key}` contains a control character (expected plain text)");
            (value.span().start, problem)
        }),
        DeValue::Table(table) => {
            table.iter().find_map(|(key, value)| control_character(key.get_ref(), value))
        }
        DeValue::Array(values) => values.iter().find_map(|value| control_character(key, value)),
        _ => None,
    }
}

impl Study {
    /// Parses and checks a study; `file` is its name in errors.
    pub fn parse(file: &str, text: &str) -> Result<Self, StudyError> {
        let located = |e: toml::de::Error| located(file, text, &e);
        let mut study: Self = toml::from_str(text).map_err(located)?;
        study.file = File { name: file.into(), text: text.into() };
        let document = DeTable::parse(text).map_err(located)?;
        let mut all = document.get_ref().iter();
        let controlled = all.find_map(|(key, value)| control_character(key.get_ref(), value));
        let fault = study.check(document.get_ref())?;
        match controlled.or(fault) {
            None => Ok(study),
            Some((offset, problem)) => Err(at(file, text, offset + 1, problem)),
        }
    }

    /// Parses the keys of the study's workload. Fails if a key is unknown, missing or of the wrong
    /// type.
    pub(super) fn own<T: DeserializeOwned>(&self) -> Result<T, StudyError> {
        let File { name, text } = &self.file;
        toml::from_str(text).map_err(|e| located(name, text, &e))
    }

    /// True if the profile runs by default.
    pub(super) fn runs(&self, profile: &StudyProfile) -> bool {
        self.profile.get_ref().contains(profile.name.get_ref())
    }

    /// Names of the targets.
    pub fn target_names(&self) -> impl Iterator<Item = &str> {
        self.targets.iter().map(|t| t.name.get_ref().as_str())
    }

    /// Returns the target with this name or, for a name with a label, the one that it labels.
    pub fn target(&self, name: &str) -> Option<&StudyTarget> {
        let named = |name: &str| self.targets.iter().find(|t| t.name.get_ref() == name);
        named(name).or_else(|| named(unlabelled(name)))
    }

    /// The scales at which a profile runs by default.
    pub fn default_scales(&self, profile: &str) -> DefaultScales {
        let runs = |scale: &StudyScale| {
            let own = scale.profile.as_ref().unwrap_or(&self.profile);
            own.get_ref().iter().any(|name| name == profile)
        };
        let scales = self.scales.iter().filter(|(_, scale)| runs(scale));
        let scales: Vec<Scale> = scales.map(|(scale, _)| *scale).collect();
        match scales.len() {
            0 => DefaultScales::None,
            all if all == self.scales.len() => DefaultScales::All,
            _ => DefaultScales::Some(scales),
        }
    }

    /// Names of the profiles.
    pub fn profile_names(&self) -> impl Iterator<Item = &str> {
        self.profiles.iter().map(|p| p.name.get_ref().as_str())
    }
}

fn located(file: &str, text: &str, error: &toml::de::Error) -> StudyError {
    at(file, text, error.span().map_or(0, |s| s.start + 1), error.message().trim().into())
}

fn at(file: &str, text: &str, offset: usize, problem: String) -> StudyError {
    let line = text.get(..offset).unwrap_or(text).lines().count().max(1);
    StudyError::Located { file: file.into(), line, problem }
}

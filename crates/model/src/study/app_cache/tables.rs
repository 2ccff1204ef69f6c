//! Workload-specific tables of a study file.

use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use toml::Spanned;

use crate::app_cache::{DataSize, Fill, Magento};
use crate::memory::{MemoryLimit, PageCache};
use crate::plan::Scale;
use crate::study::phases::{StopKind, StudyPhase};

/// Range of record sizes, bytes.
pub(super) const RECORD: RangeInclusive<u64> = 1..=16 << 20;
/// Range of numbers of records, tags and operations.
pub(super) const COUNT: RangeInclusive<u64> = 1..=100_000_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::study) struct Defaults {
    /// Tags that records choose from.
    pub(super) tags: u64,
    /// Minimum tags of a record.
    pub(super) min_tags: u64,
    /// Maximum tags of a record.
    pub(super) max_tags: u64,
    /// Minimum bytes of a record.
    pub(super) min_rec_size: u64,
    /// Maximum bytes of a record.
    pub(super) max_rec_size: u64,
    /// One in `write_chance + 1` operations that are not cleans is a write.
    pub(super) write_chance: u64,
    /// One in `clean_chance + 1` operations is a clean.
    pub(super) clean_chance: u64,
    /// Magento's layer above the backend of targets that choose none.
    pub(super) magento: Magento,
    #[serde(default = "page_reads")]
    pub(super) page_reads: u64,
    #[serde(default = "page_writes")]
    pub(super) page_writes: u64,
    #[serde(default)]
    pub(super) fill: Fill,
    /// Memory limit of the targets; no limit by default.
    pub(super) memory_limit: Option<MemoryLimit>,
    /// Data-set sizes chosen by the user, in place of the profile's.
    #[serde(skip)]
    pub(super) sizes: Option<Vec<DataSize>>,
}

/// Dozens of loads.
fn page_reads() -> u64 {
    40
}

/// A few saves.
fn page_writes() -> u64 {
    2
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::study) struct Size {
    /// Records of the data set.
    pub(super) keys: u64,
    /// Operations of each client in count-bounded profiles.
    pub(super) ops: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::study) struct Profile {
    pub(super) name: Spanned<String>,
    #[serde(rename = "about")]
    _about: IgnoredAny,
    pub(super) stop: StopKind,
    /// True for the lists, popularity and quirks of the original benchmark.
    #[serde(default)]
    pub(super) as_original: bool,
    /// Numbers of parallel clients, in place of the study's.
    #[serde(default)]
    pub(super) clients: Vec<u32>,
    /// Records of the data set, in place of the scale's. If given, then for every scale of the
    /// study.
    #[serde(default)]
    pub(super) keys: BTreeMap<Scale, Spanned<u64>>,
    /// Minimum and maximum bytes of a record, in place of the study's.
    #[serde(default)]
    pub(super) record_bytes: Option<Spanned<(u64, u64)>>,
    /// How the data set is made, in place of the study's choice.
    #[serde(default)]
    pub(super) fill: Option<Fill>,
    /// Data sets to measure separately, instead of the one of `keys` and `tags`. If given, then for
    /// every scale of the study.
    #[serde(default)]
    pub(super) sizes: BTreeMap<Scale, Spanned<Vec<DataSize>>>,
    #[serde(default)]
    pub(super) page_cache: PageCache,
    /// Memory limit of the targets by scale, unless the user sets one. If given, then for every
    /// scale of the study.
    #[serde(default)]
    pub(super) memory_limit: BTreeMap<Scale, Spanned<MemoryLimit>>,
    pub(super) phases: Vec<StudyPhase>,
}

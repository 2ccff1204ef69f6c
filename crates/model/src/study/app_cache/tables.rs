//! Workload-specific tables of a study file.

use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use toml::Spanned;

use crate::app_cache::{DataSize, Fill};
use crate::memory::{MemoryLimit, PageCache};
use crate::plan::Scale;
use crate::study::phases::{StopKind, StudyPhase};

/// Records, tags, operations.
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
    /// One in this many operations plus one is a write, where it is no clean.
    pub(super) write_chance: u64,
    /// One in this many operations plus one is a clean.
    pub(super) clean_chance: u64,
    /// Whether what Magento puts before a backend is part of it.
    pub(super) magento: bool,
    #[serde(default)]
    pub(super) fill: Fill,
    /// Memory limit of the targets; no limit by default.
    pub(super) memory_limit: Option<MemoryLimit>,
    /// Data-set sizes chosen by the user, in place of the profile's.
    #[serde(skip)]
    pub(super) sizes: Option<Vec<DataSize>>,
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
    /// Data sets that are measured one by one, instead of the one of `keys` and `tags`; for every
    /// scale of the study, or none.
    #[serde(default)]
    pub(super) sizes: BTreeMap<Scale, Spanned<Vec<DataSize>>>,
    #[serde(default)]
    pub(super) page_cache: PageCache,
    pub(super) phases: Vec<StudyPhase>,
}

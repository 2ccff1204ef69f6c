//! The application cache of a shop: records with tags, and the software that keeps them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

use crate::memory::{MemoryPlan, PageCache};
use crate::phase::Phase;
use crate::product::Product;

/// Which software's layout keeps the records of an application cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// `Zend_Cache_Backend_File`: two files a record, a clean looks at every record.
    ZendFile,
    /// `Cm_Cache_Backend_File`: one file a record, one file a tag.
    CmFile,
    /// `Cm_Cache_Backend_Redis` without scripts, as it was delivered until 2023.
    CmRedis,
    /// `Cm_Cache_Backend_Redis` with Lua scripts, as it is delivered since.
    CmRedisLua,
    /// `Zend_Cache_Backend_TwoLevels`: memcached before Zend's files.
    TwoLevelsFile,
    /// `Zend_Cache_Backend_TwoLevels`: memcached before `Cm_Cache_Backend_Redis`.
    TwoLevelsRedis,
    /// Two levels without twice the data: records in memcached, tags in `Cm_Cache_Backend_Redis`.
    SimpleTwoLevels,
    /// Magento's tables for caching in MySQL.
    MagentoMysql,
    /// Symfony's `RedisTagAwareAdapter`, as Shopware 6 uses it.
    SymfonyRedis,
    /// Symfony's `TagAwareAdapter` by version numbers of tags, on memcached.
    SymfonyMemcached,
    /// Laravel's tagged cache on Redis.
    LaravelRedis,
}

/// How the records of an application cache are saved before the first phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fill {
    /// Each by the backend's own save.
    #[default]
    Save,
    /// Many at once, and everything is as after the backend's own saves.
    Fast,
}

impl Fill {
    /// What a backend makes of it: those without a fast way save.
    #[must_use]
    pub fn on(self, backend: Backend) -> Self {
        if backend.fills_fast() { self } else { Self::Save }
    }
}

impl Backend {
    /// Every backend, in the order in which they are listed to users.
    pub const ALL: [Self; 11] = [
        Self::ZendFile,
        Self::CmFile,
        Self::CmRedis,
        Self::CmRedisLua,
        Self::TwoLevelsFile,
        Self::TwoLevelsRedis,
        Self::SimpleTwoLevels,
        Self::MagentoMysql,
        Self::SymfonyRedis,
        Self::SymfonyMemcached,
        Self::LaravelRedis,
    ];

    /// The name that studies and users write.
    pub fn name(self) -> &'static str {
        match self {
            Self::ZendFile => "zend-file",
            Self::CmFile => "cm-file",
            Self::CmRedis => "cm-redis",
            Self::CmRedisLua => "cm-redis-lua",
            Self::TwoLevelsFile => "two-levels-file",
            Self::TwoLevelsRedis => "two-levels-redis",
            Self::SimpleTwoLevels => "simple-two-levels",
            Self::MagentoMysql => "magento-mysql",
            Self::SymfonyRedis => "symfony-redis",
            Self::SymfonyMemcached => "symfony-memcached",
            Self::LaravelRedis => "laravel-redis",
        }
    }

    /// The backend of that name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|b| b.name() == name)
    }

    /// What a backend needs: the store of its records first, and behind it that of its tags.
    pub fn products(self) -> &'static [Product] {
        match self {
            Self::ZendFile | Self::CmFile => &[Product::Files],
            Self::CmRedis | Self::CmRedisLua | Self::SymfonyRedis | Self::LaravelRedis => {
                &[Product::Redis]
            }
            Self::TwoLevelsFile => &[Product::Memcached, Product::Files],
            Self::TwoLevelsRedis | Self::SimpleTwoLevels => &[Product::Memcached, Product::Redis],
            Self::MagentoMysql => &[Product::Mysql],
            Self::SymfonyMemcached => &[Product::Memcached],
        }
    }

    /// Whether `Cm_Cache_Backend_Redis` is part of it.
    pub fn uses_cm_redis(self) -> bool {
        matches!(
            self,
            Self::CmRedis | Self::CmRedisLua | Self::TwoLevelsRedis | Self::SimpleTwoLevels
        )
    }

    /// Whether its records can be filled in many at once ([`Fill::Fast`]).
    pub fn fills_fast(self) -> bool {
        match self {
            Self::CmRedis
            | Self::CmRedisLua
            | Self::TwoLevelsRedis
            | Self::SimpleTwoLevels
            | Self::SymfonyRedis
            | Self::LaravelRedis => true,
            Self::ZendFile
            | Self::CmFile
            | Self::TwoLevelsFile
            | Self::MagentoMysql
            | Self::SymfonyMemcached => false,
        }
    }

    /// What the names of all its keys begin with in a database; empty where a directory of its own
    /// holds all, `None` where it cannot be told from the keys or tables of others.
    pub fn own_names(self) -> Option<&'static str> {
        match self {
            Self::ZendFile | Self::CmFile => Some(""),
            Self::CmRedis | Self::CmRedisLua => Some("zc:"),
            _ => None,
        }
    }
}

/// What can be chosen of `Cm_Cache_Backend_Redis`, with the values that each takes. Users write
/// `cm.NAME`; what they leave out is the version's own default.
pub const CM_SETTINGS: [(&str, &[&str]); 4] = [
    ("removal", &["del", "unlink"]),
    ("transaction", &["off", "on"]),
    ("not_matching_tags", &["off", "on"]),
    ("compression", &["none", "gzip", "snappy", "lz4", "lzf", "zstd"]),
];

/// What the settings of [`CM_SETTINGS`] begin with.
pub const CM_PREFIX: &str = "cm.";

/// A data set by its size: one of several that a profile measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSize {
    /// Records.
    pub keys: u64,
    /// Tags that records choose from.
    pub tags: u64,
}

impl fmt::Display for DataSize {
    /// As users write it: `20000x200`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.keys, self.tags)
    }
}

/// The application-cache workload of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AppCache {
    /// Profile of the study that it comes from, for example `mollenhour`; of one that measures
    /// several sizes with its own: `by-records/20000x200`.
    pub profile: String,
    /// That profile without the size; `None` where it measures one size alone.
    pub sizes_of: Option<String>,
    /// Records of the data set.
    pub keys: u64,
    /// Tags that records choose from, at least 1.
    pub tags: u64,
    /// Fewest and most tags of a record, both included.
    pub tags_of_record: (u64, u64),
    /// Fewest and most bytes of a record, both included.
    pub record_bytes: (u64, u64),
    /// One in this many operations plus one is a write, where it is no clean.
    pub write_chance: u64,
    /// One in this many operations plus one is a clean.
    pub clean_chance: u64,
    /// True for the lists, popularity and quirks of the original benchmark.
    pub as_original: bool,
    /// True for what Magento puts between a shop and its backend: prefix, upper case, the tag
    /// `MAGE`, a lifetime of 7,200 s and the check of each write.
    pub magento: bool,
    /// How the records are saved before the first phase; fast only where the backend can.
    pub fill: Fill,
    /// One in this many values read is compared byte by byte; length is always checked.
    pub verify_one_in: u64,
    /// Files that records and lists are read from; `None` where they are drawn.
    pub files: Option<DataFiles>,
    /// What of the files is in the page cache when a phase begins.
    pub page_cache: PageCache,
    /// What the private servers may take of memory, with files the clients and the page cache too;
    /// `None` for no limit.
    pub memory: Option<MemoryPlan>,
    /// Measured phases, in order.
    pub phases: Vec<Phase>,
}

impl AppCache {
    /// True where no phase writes or cleans.
    pub fn only_reads(&self) -> bool {
        let reads =
            |mix: &BTreeMap<String, f64>| !mix.is_empty() && mix.keys().all(|o| o == "read");
        self.phases.iter().all(|phase| reads(&phase.mix))
    }

    /// Records that carry a tag, in the mean: what a clean removes. Every number of tags of a
    /// record is equally likely; as in the original, a record for which one is drawn has none.
    pub fn records_of_tag(&self) -> f64 {
        let (least, most) = self.tags_of_record;
        let lost = self.as_original && least <= 1 && most >= 1;
        let tags_of_records = (least + most) * (most - least + 1) / 2 - u64::from(lost);
        let tags_of_record = tags_of_records as f64 / (most - least + 1) as f64;
        self.keys as f64 * tags_of_record / self.tags as f64
    }
}

/// A directory with the original benchmark's files of a data set and of its clients' lists, and
/// what was found in it when the run was planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFiles {
    /// Absolute path.
    pub directory: String,
    /// MD5 of all files, one after the other, in hexadecimal: a trial with other files fails.
    pub md5: String,
    /// Records.
    pub keys: u64,
    /// Different tags of records and cleans.
    pub tags: u64,
    /// Lists, one a client.
    pub lists: u32,
    /// Operations of the shortest list; 0 without lists.
    pub ops: u64,
    /// Operations of the longest list; 0 without lists, and in older records.
    pub ops_of_longest: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_is_written_as_it_is_named() {
        for backend in Backend::ALL {
            assert_eq!(serde_json::to_value(backend).unwrap(), backend.name());
            assert_eq!(Backend::of_name(backend.name()), Some(backend));
        }
    }
}

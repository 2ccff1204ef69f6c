//! A shop's application cache: records with tags, and the software that stores them.

use serde::de::{self, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

use crate::memory::{MemoryPlan, PageCache};
use crate::phase::Phase;
use crate::product::Product;

/// Software whose storage layout an application cache uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// `Zend_Cache_Backend_File`: two files per record; a clean reads every record.
    ZendFile,
    /// `Cm_Cache_Backend_File`: one file per record and one per tag.
    CmFile,
    /// `Cm_Cache_Backend_Redis` without scripts, as shipped until 2023.
    CmRedis,
    /// `Cm_Cache_Backend_Redis` with Lua scripts, as shipped since 2023.
    CmRedisLua,
    /// `Zend_Cache_Backend_TwoLevels`: memcached in front of Zend's files.
    TwoLevelsFile,
    /// `Zend_Cache_Backend_TwoLevels`: memcached in front of `Cm_Cache_Backend_Redis`.
    TwoLevelsRedis,
    /// Two levels without duplicated data: records in memcached, tags in `Cm_Cache_Backend_Redis`.
    SimpleTwoLevels,
    /// Magento's cache tables in MySQL.
    MagentoMysql,
    /// Symfony's `FilesystemTagAwareAdapter`: a file per record, and a link per record and tag.
    SymfonyFile,
    /// Symfony's `RedisTagAwareAdapter`, as Shopware 6 uses it.
    SymfonyRedis,
    /// Symfony's `TagAwareAdapter`, which versions tags, on memcached.
    SymfonyMemcached,
    /// Laravel's tagged cache on Redis.
    LaravelRedis,
}

/// Method of saving the records of an application cache before the first phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fill {
    /// One at a time, with the backend's own save.
    #[default]
    Save,
    /// Many per request, with the same result as the backend's own saves.
    Fast,
}

impl Fill {
    /// The method that a backend uses: [`Fill::Save`] if it has no fast one.
    #[must_use]
    pub fn on(self, backend: Backend) -> Self {
        if backend.fills_fast() { self } else { Self::Save }
    }
}

/// A shop's layer between the application and the backend: names, tags, lifetimes and checks.
/// Written as `false`, `true` or 1 for Magento 1, and 2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Magento {
    /// None: the application calls the backend.
    #[default]
    None,
    /// Magento 1.x: prefix, upper case, the tag `MAGE`, a lifetime of 7,200 s, and the check of
    /// each write.
    One,
    /// Magento 2.x: the same without a lifetime, and cleans of one tag at a time within the tag
    /// `MAGE`. Its factory also configures `Cm_Cache_Backend_File` differently.
    Two,
}

impl Magento {
    /// Parses what users write; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "off" | "false" => Some(Self::None),
            "on" | "true" | "1" => Some(Self::One),
            "2" => Some(Self::Two),
            _ => None,
        }
    }
}

impl Serialize for Magento {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => to.serialize_bool(false),
            Self::One => to.serialize_bool(true),
            Self::Two => to.serialize_u64(2),
        }
    }
}

impl<'de> Deserialize<'de> for Magento {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AsWritten)
    }
}

struct AsWritten;

impl Visitor<'_> for AsWritten {
    type Value = Magento;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("false, true, 1 or 2")
    }

    fn visit_bool<E: de::Error>(self, on: bool) -> Result<Magento, E> {
        Ok(if on { Magento::One } else { Magento::None })
    }

    fn visit_i64<E: de::Error>(self, version: i64) -> Result<Magento, E> {
        match version {
            1 => Ok(Magento::One),
            2 => Ok(Magento::Two),
            _ => Err(E::invalid_value(Unexpected::Signed(version), &self)),
        }
    }

    fn visit_u64<E: de::Error>(self, version: u64) -> Result<Magento, E> {
        self.visit_i64(i64::try_from(version).unwrap_or(0))
    }
}

impl Backend {
    /// Every backend, in display order.
    pub const ALL: [Self; 12] = [
        Self::ZendFile,
        Self::CmFile,
        Self::CmRedis,
        Self::CmRedisLua,
        Self::TwoLevelsFile,
        Self::TwoLevelsRedis,
        Self::SimpleTwoLevels,
        Self::MagentoMysql,
        Self::SymfonyFile,
        Self::SymfonyRedis,
        Self::SymfonyMemcached,
        Self::LaravelRedis,
    ];

    /// Name in studies and on the command line.
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
            Self::SymfonyFile => "symfony-file",
            Self::SymfonyRedis => "symfony-redis",
            Self::SymfonyMemcached => "symfony-memcached",
            Self::LaravelRedis => "laravel-redis",
        }
    }

    /// The backend with this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|b| b.name() == name)
    }

    /// Stores that the backend needs: first the one for records, then a separate one for tags, if
    /// any.
    pub fn products(self) -> &'static [Product] {
        match self {
            Self::ZendFile | Self::CmFile | Self::SymfonyFile => &[Product::Files],
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

    /// Whether it supports [`Fill::Fast`].
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
            | Self::SymfonyFile
            | Self::SymfonyMemcached => false,
        }
    }

    /// Whether it can clean the records that carry all of several tags, as [`Magento::Two`] does.
    pub fn intersects_tags(self) -> bool {
        match self {
            Self::SymfonyFile
            | Self::SymfonyRedis
            | Self::SymfonyMemcached
            | Self::LaravelRedis => false,
            Self::ZendFile
            | Self::CmFile
            | Self::CmRedis
            | Self::CmRedisLua
            | Self::TwoLevelsFile
            | Self::TwoLevelsRedis
            | Self::SimpleTwoLevels
            | Self::MagentoMysql => true,
        }
    }

    /// Prefix of all its keys in a database. Empty if it has a separate directory; `None` if its
    /// keys or tables cannot be distinguished from foreign ones.
    pub fn own_names(self) -> Option<&'static str> {
        match self {
            Self::ZendFile | Self::CmFile | Self::SymfonyFile => Some(""),
            Self::CmRedis | Self::CmRedisLua => Some("zc:"),
            _ => None,
        }
    }
}

/// Settings of `Cm_Cache_Backend_Redis` with their allowed values. Users write `cm.NAME`; omitted
/// settings keep the version's default.
pub const CM_SETTINGS: [(&str, &[&str]); 4] = [
    ("removal", &["del", "unlink"]),
    ("transaction", &["off", "on"]),
    ("not_matching_tags", &["off", "on"]),
    ("compression", &["none", "gzip", "snappy", "lz4", "lzf", "zstd"]),
];

/// Prefix of the settings in [`CM_SETTINGS`].
pub const CM_PREFIX: &str = "cm.";

/// Size of a data set; a profile can measure several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSize {
    /// Records.
    pub keys: u64,
    /// Tags that records are labelled with.
    pub tags: u64,
}

impl fmt::Display for DataSize {
    /// Formats it as users write it: `20000x200`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.keys, self.tags)
    }
}

/// The application-cache workload of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AppCache {
    /// Profile of the study, for example `mollenhour`. If the profile measures several sizes, the
    /// size is appended: `by-records/20000x200`.
    pub profile: String,
    /// The profile without the size; `None` if it measures only one size.
    pub sizes_of: Option<String>,
    /// Records of the data set.
    pub keys: u64,
    /// Tags that records are labelled with, at least 1.
    pub tags: u64,
    /// Minimum and maximum tags per record, both inclusive.
    pub tags_of_record: (u64, u64),
    /// Minimum and maximum bytes per record, both inclusive.
    pub record_bytes: (u64, u64),
    /// One in `write_chance + 1` operations that are not cleans is a write.
    pub write_chance: u64,
    /// One in `clean_chance + 1` operations is a clean.
    pub clean_chance: u64,
    /// True to reproduce the lists, popularity and quirks of the original benchmark.
    pub as_original: bool,
    /// Magento's layer above the backend of this cell.
    pub magento: Magento,
    /// Loads of an operation `page`; 0 in older records.
    #[serde(default)]
    pub page_reads: u64,
    /// Saves of an operation `page`, after its loads.
    #[serde(default)]
    pub page_writes: u64,
    /// Method of saving the records before the first phase; fast only if the backend supports it.
    pub fill: Fill,
    /// One in this many values read is compared byte by byte; the length is always checked.
    pub verify_one_in: u64,
    /// Files with records and lists; `None` if they are generated.
    pub files: Option<DataFiles>,
    /// State of the page cache for the data files when a phase starts.
    pub page_cache: PageCache,
    /// Memory limit of the private servers, with files also of the clients and the page cache;
    /// `None` for no limit.
    pub memory: Option<MemoryPlan>,
    /// Measured phases, in order.
    pub phases: Vec<Phase>,
}

impl AppCache {
    /// True if no phase writes or cleans.
    pub fn only_reads(&self) -> bool {
        let reads =
            |mix: &BTreeMap<String, f64>| !mix.is_empty() && mix.keys().all(|o| o == "read");
        self.phases.iter().all(|phase| reads(&phase.mix))
    }

    /// Mean number of records that carry a tag, and so are removed by a clean. Every number of tags
    /// per record is equally likely; as in the original, a record for which 1 is drawn has none.
    pub fn records_of_tag(&self) -> f64 {
        let (min, max) = self.tags_of_record;
        let one_becomes_none = self.as_original && min <= 1 && max >= 1;
        let choices = max - min + 1;
        let sum = (min + max) * choices / 2 - u64::from(one_becomes_none);
        let mean_tags = sum as f64 / choices as f64;
        self.keys as f64 * mean_tags / self.tags as f64
    }
}

/// A directory with the original benchmark's data set and client lists, with the contents found
/// when the run was planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFiles {
    /// Absolute path.
    pub directory: String,
    /// MD5 of all files in sequence, in hexadecimal. A trial fails if the files differ.
    pub md5: String,
    /// Records.
    pub keys: u64,
    /// Distinct tags of records and cleans.
    pub tags: u64,
    /// Lists, one per client.
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
    fn layers_of_older_records_are_read() {
        fn read(text: &str) -> Option<Magento> {
            serde_json::from_str(text).ok()
        }
        assert_eq!(
            ["false", "true", "1", "2"].map(read),
            [Some(Magento::None), Some(Magento::One), Some(Magento::One), Some(Magento::Two)]
        );
        assert_eq!(["3", "\"on\"", "null"].map(read), [None; 3]);
        for layer in [Magento::None, Magento::One, Magento::Two] {
            assert_eq!(read(&serde_json::to_string(&layer).unwrap()), Some(layer));
        }
    }

    #[test]
    fn serialized_backends_equal_their_names() {
        for backend in Backend::ALL {
            assert_eq!(serde_json::to_value(backend).unwrap(), backend.name());
            assert_eq!(Backend::of_name(backend.name()), Some(backend));
        }
    }
}

//! What a store can do apart from speed: documented facts, of which tests check most on a real
//! server.
//!
//! They hold for the product with default settings; a compatible server may differ.

use serde::{Deserialize, Serialize};
use std::fmt;

use self::Property::{Growth, LargestValue, Persistence, Replication, Threads, Types};
use crate::product::Product;

/// A question that speed does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Property {
    /// Data types other than a string of bytes.
    Types,
    /// Data outlive the server process.
    Persistence,
    /// Copies on other servers, made by the store itself.
    Replication,
    /// Largest value.
    LargestValue,
    /// Threads that serve requests.
    Threads,
    /// What to do when one server is not enough.
    Growth,
}

impl Property {
    /// All properties, in display order.
    pub const ALL: [Self; 6] = [
        Self::Types,
        Self::Persistence,
        Self::Replication,
        Self::LargestValue,
        Self::Threads,
        Self::Growth,
    ];
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Types => "data types",
            Self::Persistence => "persistence",
            Self::Replication => "replication",
            Self::LargestValue => "largest value",
            Self::Threads => "threads",
            Self::Growth => "growth",
        })
    }
}

/// What a product has of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability {
    /// The property.
    pub property: Property,
    /// Whether the product has it; `None` for a property that every product has in some way.
    pub has: Option<bool>,
    /// The fact, a few words.
    pub text: &'static str,
    /// Documentation of the fact: a URL without its scheme.
    pub source: &'static str,
}

const fn has(property: Property, text: &'static str, source: &'static str) -> Capability {
    Capability { property, has: Some(true), text, source }
}

const fn lacks(property: Property, text: &'static str, source: &'static str) -> Capability {
    Capability { property, has: Some(false), text, source }
}

const fn fact(property: Property, text: &'static str, source: &'static str) -> Capability {
    Capability { property, has: None, text, source }
}

const FILES: [Capability; 6] = [
    lacks(Types, "bytes", "man7.org/linux/man-pages/man2/write.2.html"),
    has(
        Persistence,
        "files remain; without fsync, a crash of the machine loses the last seconds",
        "man7.org/linux/man-pages/man2/fsync.2.html",
    ),
    lacks(
        Replication,
        "none, unless the file system does it",
        "docs.kernel.org/filesystems/ext4/overview.html",
    ),
    fact(
        LargestValue,
        "that of the file system, 16 TiB on ext4",
        "docs.kernel.org/filesystems/ext4/overview.html",
    ),
    fact(Threads, "those of the clients", "man7.org/linux/man-pages/man2/write.2.html"),
    fact(
        Growth,
        "a larger machine, or a file system that several machines share",
        "docs.kernel.org/filesystems/nfs/index.html",
    ),
];

const REDIS: [Capability; 6] = [
    has(
        Types,
        "hashes, lists, sets, sorted sets, streams and more",
        "redis.io/docs/latest/develop/data-types/",
    ),
    has(
        Persistence,
        "snapshots, a log of all writes, or both; studies switch them off",
        "redis.io/docs/latest/operate/oss_and_stack/management/persistence/",
    ),
    has(
        Replication,
        "asynchronous, with failover by Sentinel or a cluster",
        "redis.io/docs/latest/operate/oss_and_stack/management/replication/",
    ),
    fact(
        LargestValue,
        "512 MiB (proto-max-bulk-len)",
        "redis.io/docs/latest/develop/data-types/strings/",
    ),
    fact(
        Threads,
        "one executes commands; io-threads, 1 by default, read and write sockets",
        "redis.io/docs/latest/operate/oss_and_stack/management/optimization/benchmarks/",
    ),
    fact(
        Growth,
        "a cluster: more primaries, to which slots with their keys move",
        "redis.io/docs/latest/operate/oss_and_stack/management/scaling/",
    ),
];

const MEMCACHED: [Capability; 6] = [
    lacks(Types, "bytes and counters", "github.com/memcached/memcached/wiki/Commands"),
    lacks(
        Persistence,
        "none: a restart loses every key, except after a clean stop with -e",
        "github.com/memcached/memcached/wiki/WarmRestart",
    ),
    lacks(Replication, "none", "github.com/memcached/memcached/wiki/Overview"),
    fact(
        LargestValue,
        "1 MiB with its key and metadata, up to 1 GiB with -I",
        "github.com/memcached/memcached/wiki/ConfiguringServer",
    ),
    fact(
        Threads,
        "4 workers, more with -t",
        "github.com/memcached/memcached/wiki/ConfiguringServer",
    ),
    fact(
        Growth,
        "more threads, or more servers among which clients distribute keys; no data move",
        "github.com/memcached/memcached/wiki/ConfiguringClient",
    ),
];

const MYSQL: [Capability; 6] = [
    has(Types, "tables with SQL", "mariadb.com/kb/en/data-types/"),
    has(Persistence, "a log of all commits, then data files", "mariadb.com/kb/en/innodb-redo-log/"),
    has(
        Replication,
        "asynchronous or semi-synchronous; failover by other software",
        "mariadb.com/kb/en/standard-replication/",
    ),
    fact(
        LargestValue,
        "4 GiB in a column, 16 MiB per statement (max_allowed_packet)",
        "mariadb.com/kb/en/server-system-variables/",
    ),
    fact(Threads, "one per connection", "mariadb.com/kb/en/thread-pool-in-mariadb/"),
    fact(
        Growth,
        "a larger machine; replicas serve reads, not writes",
        "mariadb.com/kb/en/standard-replication/",
    ),
];

const POSTGRES: [Capability; 6] = [
    has(Types, "tables with SQL", "www.postgresql.org/docs/current/datatype.html"),
    has(
        Persistence,
        "a log of all commits, then data files",
        "www.postgresql.org/docs/current/wal-intro.html",
    ),
    has(
        Replication,
        "asynchronous or synchronous; failover by other software",
        "www.postgresql.org/docs/current/warm-standby.html",
    ),
    fact(LargestValue, "1 GiB in a field", "www.postgresql.org/docs/current/limits.html"),
    fact(
        Threads,
        "one process per connection",
        "www.postgresql.org/docs/current/tutorial-arch.html",
    ),
    fact(
        Growth,
        "a larger machine; replicas serve reads, not writes",
        "www.postgresql.org/docs/current/warm-standby.html",
    ),
];

const SQLITE: [Capability; 6] = [
    has(Types, "tables with SQL", "www.sqlite.org/datatype3.html"),
    has(Persistence, "a database file with a journal", "www.sqlite.org/atomiccommit.html"),
    lacks(Replication, "none", "www.sqlite.org/whentouse.html"),
    fact(LargestValue, "1,000,000,000 bytes", "www.sqlite.org/limits.html"),
    fact(Threads, "those of the clients; one writes at a time", "www.sqlite.org/lockingv3.html"),
    fact(Growth, "a larger machine", "www.sqlite.org/whentouse.html"),
];

impl Product {
    /// What it has of each property, in their order. Empty for the disk itself, which stores
    /// nothing by name.
    pub fn capabilities(self) -> &'static [Capability] {
        match self {
            Self::Files => &FILES,
            Self::Redis => &REDIS,
            Self::Mysql => &MYSQL,
            Self::Postgres => &POSTGRES,
            Self::Sqlite => &SQLITE,
            Self::Disk => &[],
            Self::Memcached => &MEMCACHED,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_product_has_every_property_in_order() {
        for product in Product::ALL.into_iter().filter(|product| *product != Product::Disk) {
            let own: Vec<Property> = product.capabilities().iter().map(|c| c.property).collect();
            assert_eq!(own, Property::ALL, "{product:?}");
        }
    }
}

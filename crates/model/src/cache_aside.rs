//! An application that reads rows of a database through a cache.

use serde::{Deserialize, Serialize};

use crate::phase::Phase;
use crate::product::Product;

/// Databases behind caches, each as its cache and the database.
const PAIRS: [[Product; 2]; 4] = [
    [Product::Redis, Product::Mysql],
    [Product::Memcached, Product::Mysql],
    [Product::Redis, Product::Postgres],
    [Product::Memcached, Product::Postgres],
];

/// The stores of a target with a cache in front of a database; `None` if this workload does not
/// support the two.
pub(crate) fn pair(cache: Product, database: Product) -> Option<&'static [Product]> {
    let found = PAIRS.iter().find(|pair| **pair == [cache, database]);
    found.map(<[Product; 2]>::as_slice)
}

/// Shortest row in bytes: its fixed columns with their longest values.
pub const ROW_BYTES_MIN: usize = 256;

/// Reads of an application through a cache, of one cell. On a target without a cache, every read is
/// a query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CacheAside {
    /// Profile of the study that it comes from, for example `rising`.
    pub profile: String,
    /// Rows in the database; reads choose from all of them.
    pub rows: u64,
    /// Bytes of a row as it is cached, at least [`ROW_BYTES_MIN`].
    pub row_bytes: usize,
    /// Exponent of Zipf's law, by which reads choose rows; 0 for all rows alike.
    pub zipf: f64,
    /// Lifetime of a cached row in seconds, at least 1.
    pub ttl_s: u64,
    /// True if a reader that misses takes a lock before its query, and others wait for the row.
    pub lock: bool,
    /// One in this many rows read is compared byte by byte; length is always checked.
    pub verify_one_in: u64,
    /// Measured phases, in order. In phase [`PEAK`](crate::PEAK) the cache is bypassed.
    pub phases: Vec<Phase>,
}

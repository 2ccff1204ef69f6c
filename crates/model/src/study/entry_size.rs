//! Approximate memory of a key and its value, from which a number of keys follows.

use super::collections::Collections;
use crate::product::Product;

/// Key names as `redis-benchmark` generated them in 2013: 21 bytes.
pub(super) const KEY_PREFIX: &str = "key:rand:";
const KEY_BYTES: u64 = 21;
/// Redis' overhead per key in addition to name and value: an entry of the hash table (24 bytes),
/// its slot (8, or 16 after the table grew), an object (16), and two string headers (8).
const ENTRY_BYTES: u64 = 24 + 12 + 16 + 8;

/// Memory of a key with a value of this size or a collection of such elements, or space of a block,
/// bytes. Other stores are filled with as many keys as Redis.
pub(super) fn entry_bytes(
    value_bytes: u64,
    collections: Option<&Collections>,
    product: Product,
) -> u64 {
    match (product, collections) {
        (Product::Disk, _) => value_bytes,
        (_, Some(own)) => redis_bytes(own.bytes(value_bytes)),
        (_, None) => redis_bytes(value_bytes),
    }
}

/// Approximate memory that Redis uses for a key and its value; jemalloc rounds each string up.
fn redis_bytes(value_bytes: u64) -> u64 {
    ENTRY_BYTES + size_class(KEY_BYTES + 2) + size_class(value_bytes + 6)
}

/// jemalloc's allocation for a size: multiples of 16 up to 128, then four sizes per doubling
/// (jemalloc(3), size classes).
fn size_class(bytes: u64) -> u64 {
    let spacing = if bytes <= 128 { 16 } else { 1 << ((bytes - 1).ilog2() - 2) };
    bytes.next_multiple_of(spacing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn string_sizes_are_rounded_up_to_jemalloc_classes() {
        let classes = [23, 64, 128, 129, 1006, 1024, 1025, 4000].map(size_class);
        assert_eq!(classes, [32, 64, 128, 160, 1024, 1024, 1280, 4096]);
    }
}

//! What keys cost in memory, from `stats` and `stats items`.
//!
//! With a file of values (extstore), an item whose value is in the file keeps its key and the place
//! in memory. Such items are short and have slab classes of their own; `mem_requested` of a class
//! is the memory of its items without what the class rounds up. Source: memcached's
//! `doc/protocol.txt` and `doc/storage.txt`.

use model::Fact;

/// Size of the shortest value that moves to the file, bytes: the default of `ext_item_size`.
const MOVED_FROM_BYTES: u64 = 512;

/// Items of all servers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Items {
    count: u64,
    /// Memory of all items, bytes.
    bytes: u64,
    /// Items that are too short for the file, their memory, and items with their value in it.
    short: (u64, u64),
    in_file: Option<u64>,
}

impl Items {
    /// Adds a server, given its `stats` and `stats items`.
    pub(super) fn add(&mut self, stats: &[(String, String)], items: &[(String, String)]) {
        let in_file = stats.iter().find(|(name, _)| name == "extstore_objects_used");
        if let Some(count) = in_file.and_then(|(_, count)| count.parse::<u64>().ok()) {
            *self.in_file.get_or_insert(0) += count;
        }
        for (name, bytes) in items {
            let Some(class) = name.strip_suffix(":mem_requested") else { continue };
            let number = format!("{class}:number");
            let count = items.iter().find(|(name, _)| *name == number);
            let count = count.and_then(|(_, count)| count.parse::<u64>().ok());
            let (Some(count), Ok(bytes)) = (count.filter(|n| *n > 0), bytes.parse::<u64>()) else {
                continue;
            };
            self.count += count;
            self.bytes += bytes;
            if bytes / count < MOVED_FROM_BYTES {
                self.short = (self.short.0 + count, self.short.1 + bytes);
            }
        }
    }

    /// The memory of a key, or with a file that of a key whose value is in it, with the share of
    /// such keys and of their memory. Nothing of the latter if other short items make it unknown.
    pub(super) fn facts(&self) -> Vec<Fact> {
        let Self { count, bytes, short, in_file } = *self;
        let fact = |name: &str, (part, whole): (u64, u64)| {
            let value = part as f64 / whole as f64;
            (whole > 0).then(|| Fact { name: name.into(), value, source: "stats".into() })
        };
        let Some(in_file) = in_file else {
            return fact(Fact::BYTES_PER_KEY, (bytes, count)).into_iter().collect();
        };
        // Both counts change while values move to the file.
        let are_these = short.0.abs_diff(in_file) <= in_file / 50;
        let facts = [
            fact(Fact::FLASH_KEY_BYTES, (short.1, short.0)),
            fact("flash_keys_share", (short.0, count)),
            fact("index_share", (short.1, bytes)),
        ];
        facts.into_iter().flatten().filter(|_| are_these).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(all: &[(&str, u64)]) -> Vec<(String, String)> {
        all.iter().map(|(name, value)| ((*name).to_string(), value.to_string())).collect()
    }

    fn facts(items: &Items) -> Vec<(String, f64)> {
        items.facts().into_iter().map(|fact| (fact.name, fact.value)).collect()
    }

    #[test]
    fn keys_with_their_value_in_a_file_are_told_apart() {
        let items = lines(&[
            ("items:1:number", 8_000),
            ("items:1:mem_requested", 640_000),
            ("items:12:number", 2_000),
            ("items:12:mem_requested", 2_560_000),
        ]);
        let mut all = Items::default();
        all.add(&lines(&[("extstore_objects_used", 7_990)]), &items);
        let expected = [("flash_key_bytes", 80.0), ("flash_keys_share", 0.8), ("index_share", 0.2)];
        assert_eq!(facts(&all), expected.map(|(name, value)| (name.to_string(), value)));
        // Half of the short items have a short value.
        let mut unknown = Items::default();
        unknown.add(&lines(&[("extstore_objects_used", 4_000)]), &items);
        assert_eq!(facts(&unknown), []);
    }

    #[test]
    fn without_a_file_all_items_are_in_memory() {
        let mut all = Items::default();
        let items =
            |count, bytes| lines(&[("items:2:number", count), ("items:2:mem_requested", bytes)]);
        assert_eq!(facts(&all), []);
        all.add(&[], &items(3, 300));
        all.add(&[], &items(1, 500));
        assert_eq!(facts(&all), [("bytes_per_key".to_string(), 200.0)]);
    }
}

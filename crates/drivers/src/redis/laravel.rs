//! The layout of Laravel's tagged cache on Redis (since 10; as of 13) through the PHP extension
//! redis.
//!
//! | key | kind | holds |
//! |---|---|---|
//! | `cachedyno_cache_<id>` | string | a record without tags |
//! | `cachedyno_cache_<sha1>:<id>` | string | a record with tags |
//! | `cachedyno_cache_tag:<tag>:entries` | sorted set | `<sha1>:<id>` of records |
//!
//! The hash covers `tag:<tag>:entries` of each tag in order, joined by `|`. Entries are sorted by
//! the second at which they expire, -1 for never. A value is PHP's `serialize` of a string, or a
//! finite number in plain decimal. `cachedyno_cache_` is the store's prefix.
//!
//! - Load: `GET`. The key depends on the record's tags, which a shop's code knows. Here the client
//!   knows them from [`TaggedCache::learn`] or from its own saves.
//! - Save: a `ZADD` per tag, then `SETEX` or `SET`, one round trip each.
//! - Clean by any tag: `ZSCAN`, and per thousand entries a script that removes records and entries
//!   (our own script with Laravel's commands). All: `FLUSHDB`. Old: expired entries are removed
//!   from each tag (`cache:prune-stale-tags`).

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Duration;

use model::{Endpoint, ErrorClass};
use sha1::{Digest, Sha1};
use workloads::app_cache::{CleanMode, Effort, Record, TaggedCache};
use workloads::store::{Found, StoreError};

use super::counted::{CountingConnection, Names, Scan, digits};
use super::errors::unexpected;
use super::gathered::SetMembers;
use super::resp::Reply;
use super::stale::{Index, stale_members};
use crate::clock::now_s;
use crate::fault;
use crate::php::Value;

const PREFIX: &[u8] = b"cachedyno_cache_";

/// Batch size: entries per script, tags per prune, members per scan.
const AT_ONCE: usize = 1_000;
/// The same number as text.
const AT_ONCE_TEXT: &[u8] = b"1000";

/// Removes records and their entries. Keys: the records. Arguments: the prefix, keys of the tags.
const FLUSH: &str = "for _, key in ipairs(KEYS) do
  redis.call('DEL', key)
  for n = 2, #ARGV do redis.call('ZREM', ARGV[n], key:sub(#ARGV[1] + 1)) end
end";

pub(super) struct Laravel {
    link: CountingConnection,
    /// Prefixes of the IDs of records with tags.
    namespaces: HashMap<String, String>,
    value: Vec<u8>,
    /// Tag entries of filled records that are not yet sent, and their expiry times.
    gathered: SetMembers,
    ends: Names,
}

impl Laravel {
    pub(super) fn open(endpoint: &Endpoint, timeout: Duration) -> Result<Self, StoreError> {
        let link = CountingConnection::connect(endpoint, timeout)?;
        Ok(Self {
            link,
            namespaces: HashMap::new(),
            value: Vec::new(),
            gathered: SetMembers::default(),
            ends: Names::default(),
        })
    }

    /// Starts a request whose first key is a record's.
    fn begin(&mut self, parts: usize, command: &[u8], id: &str) -> &mut CountingConnection {
        let namespace = self.namespaces.get(id).map(String::as_bytes).unwrap_or_default();
        self.link.begin(parts).part(&[command]).part(&[PREFIX, namespace, id.as_bytes()])
    }

    fn add_entries(
        &mut self,
        id: &str,
        tags: &[String],
        lifetime_s: Option<u64>,
    ) -> Result<(), StoreError> {
        let ends = ends(lifetime_s);
        let namespace = self.namespaces.get(id).map(String::as_bytes).unwrap_or_default();
        for tag in tags {
            let link = self.link.begin(4).part(&[b"ZADD"]);
            link.part(&[PREFIX, b"tag:", tag.as_bytes(), b":entries"]).part(&[&ends]);
            link.part(&[namespace, id.as_bytes()]).ask_number("ZADD")?;
        }
        Ok(())
    }

    /// Starts the request that writes a record, without its tag entries.
    fn begin_record(&mut self, id: &str, value: &[u8], lifetime_s: Option<u64>) {
        let mut written = std::mem::take(&mut self.value);
        written.clear();
        if is_number(value) {
            written.extend_from_slice(value);
        } else {
            Value::Str(value).write(&mut written);
        }
        match lifetime_s {
            Some(s) => self.begin(4, b"SETEX", id).part(&[&digits(s)]),
            None => self.begin(3, b"SET", id),
        }
        .part(&[&written]);
        self.value = written;
    }

    /// Sends the tag entries of the filled records.
    fn begin_gathered(&mut self) -> Result<(), StoreError> {
        let (gathered, ends) = (std::mem::take(&mut self.gathered), std::mem::take(&mut self.ends));
        for (tag, numbers) in gathered.sets() {
            let link = self.link.begin(2 + 2 * numbers.len()).part(&[b"ZADD"]);
            link.part(&[PREFIX, b"tag:", tag, b":entries"]);
            for number in numbers {
                link.part(&[ends.get(*number)]).part(&[gathered.members().get(*number)]);
            }
            link.stream()?;
        }
        Ok(())
    }

    fn flush(&mut self, tags: &[String]) -> Result<(), StoreError> {
        let (mut entries, mut page, mut scan) = (Names::default(), Names::default(), Scan::new());
        for tag in tags {
            scan.restart();
            loop {
                let link = self.link.begin(7).part(&[b"ZSCAN"]);
                link.part(&[PREFIX, b"tag:", tag.as_bytes(), b":entries"]).part(&[scan.cursor()]);
                link.part(&[b"COUNT"]).part(&[AT_ONCE_TEXT]).part(&[b"MATCH"]).part(&[b"*"]);
                self.link.ask_page("ZSCAN", &mut scan, &mut page)?;
                // Entries alternate with their scores.
                for entry in page.iter().step_by(2) {
                    entries.push(entry);
                    if entries.len() == AT_ONCE {
                        self.remove_entries(&entries, tags)?;
                        entries.clear();
                    }
                }
                if scan.is_over() {
                    break;
                }
            }
        }
        if entries.is_empty() { Ok(()) } else { self.remove_entries(&entries, tags) }
    }

    fn remove_entries(&mut self, entries: &Names, tags: &[String]) -> Result<(), StoreError> {
        let link = self.link.begin(3 + entries.len() + 1 + tags.len()).part(&[b"EVAL"]);
        link.part(&[FLUSH.as_bytes()]).part(&[&digits(entries.len() as u64)]);
        for entry in entries.iter() {
            link.part(&[PREFIX, entry]);
        }
        link.part(&[PREFIX]);
        for tag in tags {
            link.part(&[PREFIX, b"tag:", tag.as_bytes(), b":entries"]);
        }
        match self.link.ask()? {
            Reply::Nil => Ok(()),
            other => Err(unexpected("EVAL", &other)),
        }
    }

    fn prune(&mut self) -> Result<(), StoreError> {
        let now = digits(now_s());
        let (mut scan, mut sets, mut page) = (Scan::new(), Names::default(), Names::default());
        loop {
            let link = self.link.begin(6).part(&[b"SCAN"]).part(&[scan.cursor()]).part(&[b"COUNT"]);
            link.part(&[AT_ONCE_TEXT]).part(&[b"MATCH"]).part(&[PREFIX, b"tag:*:entries"]);
            self.link.ask_page("SCAN", &mut scan, &mut page)?;
            for set in page.iter() {
                sets.push(set);
                if sets.len() == AT_ONCE {
                    self.prune_sets(&sets, &now)?;
                    sets.clear();
                }
            }
            if scan.is_over() {
                return self.prune_sets(&sets, &now);
            }
        }
    }

    fn prune_sets(&mut self, sets: &Names, now: &[u8]) -> Result<(), StoreError> {
        for set in sets.iter() {
            self.link.request(&[b"ZREMRANGEBYSCORE", set, b"0", now]);
            self.link.ask_number("ZREMRANGEBYSCORE")?;
        }
        Ok(())
    }
}

/// Expiry time of an entry that is added now, as its score.
fn ends(lifetime_s: Option<u64>) -> Vec<u8> {
    lifetime_s.map_or_else(|| b"-1".to_vec(), |s| digits(now_s() + s))
}

/// The prefix of a record's ID for these tags: the hash and a colon.
fn namespace(tags: &[String]) -> String {
    let keys: Vec<String> = tags.iter().map(|tag| format!("tag:{tag}:entries")).collect();
    let mut namespace = String::with_capacity(41);
    for byte in Sha1::digest(keys.join("|")) {
        let _ = write!(namespace, "{byte:02x}");
    }
    namespace.push(':');
    namespace
}

/// True for what PHP considers a finite number: `is_numeric` and `is_finite`.
fn is_number(value: &[u8]) -> bool {
    let blank = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}');
    let Ok(text) = std::str::from_utf8(value) else { return false };
    let text = text.trim_matches(blank);
    // PHP does not treat `inf` and `nan` as numbers.
    let is_word = text.bytes().any(|b| b.is_ascii_alphabetic() && !b.eq_ignore_ascii_case(&b'e'));
    !is_word && text.parse::<f64>().is_ok_and(f64::is_finite)
}

impl TaggedCache for Laravel {
    fn load(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Found, StoreError> {
        value.clear();
        match self.begin(2, b"GET", id).ask()? {
            Reply::Bulk(bytes) if is_number(bytes) => value.extend_from_slice(bytes),
            Reply::Bulk(bytes) => {
                let text = Value::read_whole(bytes).and_then(|value| value.str());
                let text = text.ok_or_else(|| {
                    let id = fault::printable(id.as_bytes());
                    let message =
                        format!("`{id}` does not contain a Laravel value (expected a string)");
                    StoreError::soft(ErrorClass::Protocol, message)
                })?;
                value.extend_from_slice(text);
            }
            Reply::Nil => return Ok(Found::No),
            other => return Err(unexpected("GET", &other)),
        }
        Ok(Found::Yes)
    }

    fn save(&mut self, record: Record<'_>) -> Result<(), StoreError> {
        let Record { id, value, tags, lifetime_s } = record;
        self.learn(id, tags);
        if lifetime_s == Some(0) {
            return self.remove(id).map(drop);
        }
        self.add_entries(id, tags, lifetime_s)?;
        self.begin_record(id, value, lifetime_s);
        match self.link.ask()? {
            Reply::Status(b"OK") => Ok(()),
            other => Err(unexpected("SET", &other)),
        }
    }

    fn needs_tags(&self) -> bool {
        true
    }

    fn fill(&mut self, record: Record<'_>) -> Result<(), StoreError> {
        let Record { id, value, tags, lifetime_s } = record;
        self.learn(id, tags);
        if lifetime_s == Some(0) {
            return Ok(());
        }
        self.begin_record(id, value, lifetime_s);
        let mut entry = self.namespaces.get(id).cloned().unwrap_or_default();
        entry.push_str(id);
        self.gathered.add(entry.as_bytes(), tags.iter().map(String::as_str));
        self.ends.push(&ends(lifetime_s));
        if self.gathered.is_full() {
            self.begin_gathered()?;
        }
        self.link.stream()
    }

    fn fill_end(&mut self) -> Result<(), StoreError> {
        self.begin_gathered()?;
        self.link.settle()
    }

    fn learn(&mut self, id: &str, tags: &[String]) {
        if tags.is_empty() {
            self.namespaces.remove(id);
        } else {
            self.namespaces.insert(id.into(), namespace(tags));
        }
    }

    fn remove(&mut self, id: &str) -> Result<Found, StoreError> {
        let removed = self.begin(2, b"DEL", id).ask_number("DEL")?;
        Ok(if removed > 0 { Found::Yes } else { Found::No })
    }

    fn clean(&mut self, mode: CleanMode, tags: &[String]) -> Result<(), StoreError> {
        match mode {
            CleanMode::All => match self.link.request(&[b"FLUSHDB"]).ask()? {
                Reply::Status(b"OK") => Ok(()),
                other => Err(unexpected("FLUSHDB", &other)),
            },
            CleanMode::Old => self.prune(),
            CleanMode::MatchingAnyTag => self.flush(tags),
            CleanMode::MatchingTag | CleanMode::NotMatchingTag => {
                let message = "Laravel only removes all records or those with any tag (expected a \
                               clean of all, of old records or by any tag)";
                Err(StoreError::soft(ErrorClass::Other, message))
            }
        }
    }

    fn stale_members(&mut self) -> Result<Option<u64>, StoreError> {
        let index =
            Index { sets: &[PREFIX, b"tag:*:entries"], scan: "ZSCAN", record_prefix: PREFIX };
        stale_members(&mut self.link, &index).map(Some)
    }

    fn effort(&self) -> Effort {
        self.link.effort()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_a_hash_of_the_tags_in_their_order() {
        // Prefixes that Laravel 13 writes for the tags T1 and T2, and for T5.
        let of = |tags: &[&str]| namespace(&tags.iter().map(|t| (*t).into()).collect::<Vec<_>>());
        assert_eq!(of(&["T1", "T2"]), "b27f2e0aa9044f8c8beee5dec76334a677698409:");
        assert_eq!(of(&["T5"]), "c080d3bf5de0b777899c638244ba1fd032bce090:");
        assert_ne!(of(&["T2", "T1"]), of(&["T1", "T2"]));
    }

    #[test]
    fn numbers_are_detected_as_in_php() {
        // Results of `is_numeric($v) && is_finite($v)` in PHP 8.2.
        for yes in ["0", "17.5", " 1", "1 ", "\u{b}1\n", "-.5", "+1.", "1e5", "1E-5", "007"] {
            assert!(is_number(yes.as_bytes()), "{yes}");
        }
        for no in
            ["", " ", ".", "-", "1e", "1e999", "inf", "-Infinity", "nan", "0x1a", "1 2", "+-1"]
        {
            assert!(!is_number(no.as_bytes()), "{no}");
        }
        assert!(!is_number(&[0xff]));
    }
}

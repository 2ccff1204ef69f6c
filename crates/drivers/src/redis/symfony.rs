//! The layout of Symfony's `RedisTagAwareAdapter` (7.1), as used by Shopware 6.
//!
//! | key | kind | holds |
//! |---|---|---|
//! | `cachedyno:<id>` | string | a record with its tags; lifetime 100 days by default |
//! | `cachedyno:\1tags\1<tag>` | set | keys of records that had the tag; never expires |
//!
//! A record is an item of [`crate::symfony`]. `cachedyno` is the pool's namespace.
//!
//! - Load: `MGET` of one key.
//! - Save: `MGET`, since Symfony returns a record before it can be filled and then sends only the
//!   changes; then one pipeline of `SETEX`, `SADD` and `SREM`. The first save sends `INFO` before:
//!   the adapter rejects servers that can evict tags.
//! - Remove: a script that returns the tags, then one pipeline of `SREM`.
//! - Clean by any tag: one script per tag, in one pipeline. All: `SCAN` of the namespace, and
//!   `UNLINK`.
//!
//! The scripts are our own text with Symfony's commands and, as in Symfony, sent in full each time.

use std::time::Duration;

use model::{Endpoint, ErrorClass};
use workloads::app_cache::{CleanMode, Effort, Record, TaggedCache};
use workloads::store::{Found, StoreError};

use super::counted::{CountingConnection, Names, Scan, digits};
use super::errors::unexpected;
use super::gathered::SetMembers;
use super::resp::Reply;
use super::stale::{Index, stale_members};
use crate::fault;
use crate::symfony::{self, Parts, expect_names, read_tags, split};
use crate::tags::unique;

const NAMESPACE: &[u8] = b"cachedyno:";
const TAG: &[u8] = symfony::TAG.as_bytes();

/// Lifetime of a record without one: 100 days.
const LIFETIME_S_DEFAULT: u64 = 8_640_000;

/// Removes a record and returns its serialized tags.
const REMOVE: &str = "local record = redis.call('GET', KEYS[1])
redis.call('UNLINK', KEYS[1])
if not record or #record <= 13 then return '' end
local one, six, ten, a, b, c = record:byte(1), record:byte(6), record:byte(10, 13)
if one ~= 157 or six ~= 0 or ten ~= 95 then return '' end
return record:sub(14, 13 + a * 65536 + b * 256 + c)";

/// Removes the records of a tag and its set. Keys on another server cannot be removed; they move to
/// a second set, whose first members are returned.
const INVALIDATE: &str = "local set, rest, at = KEYS[1], '{' .. KEYS[1] .. '}' .. KEYS[1], '0'
repeat
  local page = redis.call('SSCAN', set, at, 'COUNT', 5000)
  local removed = {}
  for _, key in ipairs(page[2]) do
    if pcall(redis.call, 'DEL', ARGV[1] .. key) then removed[#removed + 1] = key end
  end
  if #removed > 0 then redis.call('SREM', set, unpack(removed)) end
  at = page[1]
until at == '0'
redis.call('SUNIONSTORE', rest, set)
redis.call('DEL', set)
return redis.call('SSCAN', rest, '0', 'COUNT', 5000)";

pub(super) struct Symfony {
    link: CountingConnection,
    /// True once the server's eviction policy has been checked.
    eviction_checked: bool,
    record: Vec<u8>,
    /// Tag members of filled records that are not yet sent.
    gathered: SetMembers,
}

impl Symfony {
    pub(super) fn open(endpoint: &Endpoint, timeout: Duration) -> Result<Self, StoreError> {
        let link = CountingConnection::connect(endpoint, timeout)?;
        Ok(Self {
            link,
            eviction_checked: false,
            record: Vec::new(),
            gathered: SetMembers::default(),
        })
    }

    fn fetch(&mut self, id: &str) -> Result<Option<Parts<'_>>, StoreError> {
        self.link.begin(2).part(&[b"MGET"]).part(&[NAMESPACE, id.as_bytes()]).send()?;
        if self.link.elements("MGET")? != 1 {
            let message = "`MGET` of one key did not return one value";
            return Err(StoreError::fatal(ErrorClass::Protocol, message));
        }
        match self.link.reply()? {
            // Values that PHP treats as empty.
            Reply::Nil | Reply::Bulk(b"" | b"0") => Ok(None),
            Reply::Bulk(bytes) => split(bytes).map(Some).ok_or_else(|| foreign(id)),
            other => Err(unexpected("MGET", &other)),
        }
    }

    fn expect_tags_kept(&mut self) -> Result<(), StoreError> {
        if self.eviction_checked {
            return Ok(());
        }
        let policy = match self.link.request(&[b"INFO", b"Memory"]).ask()? {
            Reply::Bulk(info) => {
                let mut lines = info.split(|byte| *byte == b'\n');
                lines.find_map(|line| line.trim_ascii().strip_prefix(b"maxmemory_policy:"))
            }
            other => return Err(unexpected("INFO", &other)),
        };
        let policy = policy.unwrap_or_default();
        if policy != b"noeviction" && !policy.starts_with(b"volatile-") {
            let policy = fault::printable(policy);
            let message = format!(
                "RedisTagAwareAdapter rejects a server that can evict tags: maxmemory-policy is \
                 `{policy}` (expected `noeviction` or one that starts with `volatile-`)"
            );
            return Err(StoreError::soft(ErrorClass::Other, message));
        }
        self.eviction_checked = true;
        Ok(())
    }

    /// Starts the request that writes a record, without its tag sets.
    fn begin_record(&mut self, record: Record<'_>, tags: &[&str]) -> Result<(), StoreError> {
        self.record.clear();
        symfony::join(tags, record.value, &mut self.record)?;
        let lifetime_s = digits(record.lifetime_s.unwrap_or(LIFETIME_S_DEFAULT));
        let link = self.link.begin(4).part(&[b"SETEX"]).part(&[NAMESPACE, record.id.as_bytes()]);
        link.part(&[&lifetime_s]).part(&[&self.record]);
        Ok(())
    }

    /// Adds the filled records to their tag sets.
    fn begin_gathered(&mut self) -> Result<(), StoreError> {
        let gathered = std::mem::take(&mut self.gathered);
        for (tag, numbers) in gathered.sets() {
            let link = self.link.begin(2 + numbers.len()).part(&[b"SADD"]);
            link.part(&[NAMESPACE, TAG, tag]);
            for number in numbers {
                link.part(&[NAMESPACE, gathered.members().get(*number)]);
            }
            link.stream()?;
        }
        Ok(())
    }

    /// Adds a request for the set of one tag.
    fn begin_member(&mut self, command: &[u8], tag: &str, id: &str) {
        let link = self.link.begin(3).part(&[command]).part(&[NAMESPACE, TAG, tag.as_bytes()]);
        link.part(&[NAMESPACE, id.as_bytes()]);
    }

    fn invalidate(&mut self, tags: &[&str]) -> Result<(), StoreError> {
        if tags.is_empty() {
            return Ok(());
        }
        for tag in tags {
            let link = self.link.begin(5).part(&[b"EVAL"]).part(&[INVALIDATE.as_bytes()]);
            link.part(&[b"1"]).part(&[NAMESPACE, TAG, tag.as_bytes()]).part(&[b""]);
        }
        self.link.send()?;
        let mut result = Ok(());
        for _ in tags {
            match self.left() {
                Err(e) if e.fatal => return Err(e),
                one => result = result.and(one),
            }
        }
        result
    }

    /// Reads the keys that an invalidation could not remove.
    fn left(&mut self) -> Result<(), StoreError> {
        let mut left = Names::default();
        self.link.elements("EVAL")?;
        let at_end = self.link.reply()? == Reply::Bulk(b"0");
        self.link.names("EVAL", &mut left)?;
        if at_end && left.is_empty() {
            return Ok(());
        }
        let message =
            "records of a tag are on other servers (expected a single server, not a cluster)";
        Err(StoreError::soft(ErrorClass::Other, message))
    }

    fn clear(&mut self) -> Result<(), StoreError> {
        match self.link.request(&[b"INFO", b"Server"]).ask()? {
            Reply::Bulk(_) => {}
            other => return Err(unexpected("INFO", &other)),
        }
        let (mut scan, mut keys) = (Scan::new(), Names::default());
        loop {
            let link = self.link.begin(6).part(&[b"SCAN"]).part(&[scan.cursor()]).part(&[b"COUNT"]);
            link.part(&[b"1000"]).part(&[b"MATCH"]).part(&[NAMESPACE, b"*"]);
            self.link.ask_page("SCAN", &mut scan, &mut keys)?;
            if !keys.is_empty() {
                self.link.begin(1 + keys.len()).part(&[b"UNLINK"]);
                for key in keys.iter() {
                    self.link.part(&[key]);
                }
                self.link.ask_number("UNLINK")?;
            }
            if scan.is_over() {
                return Ok(());
            }
        }
    }
}

fn foreign(id: &str) -> StoreError {
    let id = fault::printable(id.as_bytes());
    let message = format!(
        "`{id}` does not contain a record of RedisTagAwareAdapter (expected 0x9d as its first byte)"
    );
    StoreError::soft(ErrorClass::Protocol, message)
}

impl TaggedCache for Symfony {
    fn load(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Found, StoreError> {
        value.clear();
        expect_names([id])?;
        let Some(record) = self.fetch(id)? else { return Ok(Found::No) };
        value.extend_from_slice(record.value);
        Ok(Found::Yes)
    }

    fn save(&mut self, record: Record<'_>) -> Result<(), StoreError> {
        let Record { id, lifetime_s, .. } = record;
        let tags = unique(record.tags);
        expect_names([id].iter().chain(&tags).copied())?;
        let before = match self.fetch(id)? {
            Some(record) => record.tags().ok_or_else(|| foreign(id))?,
            None => Vec::new(),
        };
        if lifetime_s == Some(0) {
            self.link.begin(2).part(&[b"UNLINK"]).part(&[NAMESPACE, id.as_bytes()]);
            return self.link.ask_number("UNLINK").map(drop);
        }
        self.expect_tags_kept()?;
        self.begin_record(record, &tags)?;
        for tag in tags.iter().filter(|tag| !before.iter().any(|had| had == *tag)) {
            self.begin_member(b"SADD", tag, id);
        }
        for tag in before.iter().filter(|had| !tags.contains(&had.as_str())) {
            self.begin_member(b"SREM", tag, id);
        }
        self.link.all().map(drop)
    }

    fn fill(&mut self, record: Record<'_>) -> Result<(), StoreError> {
        let Record { id, lifetime_s, .. } = record;
        let tags = unique(record.tags);
        expect_names([id].iter().chain(&tags).copied())?;
        if lifetime_s == Some(0) {
            return Ok(());
        }
        self.expect_tags_kept()?;
        self.begin_record(record, &tags)?;
        self.gathered.add(id.as_bytes(), tags);
        if self.gathered.is_full() {
            self.begin_gathered()?;
        }
        self.link.stream()
    }

    fn fill_end(&mut self) -> Result<(), StoreError> {
        self.begin_gathered()?;
        self.link.settle()
    }

    /// The adapter does not report whether the record existed: always [`Found::Yes`].
    fn remove(&mut self, id: &str) -> Result<Found, StoreError> {
        expect_names([id])?;
        let link = self.link.begin(4).part(&[b"EVAL"]).part(&[REMOVE.as_bytes()]);
        link.part(&[b"1"]).part(&[NAMESPACE, id.as_bytes()]);
        let tags = match self.link.ask()? {
            Reply::Bulk(tags) => read_tags(tags).ok_or_else(|| foreign(id))?,
            other => return Err(unexpected("EVAL", &other)),
        };
        for tag in &tags {
            self.begin_member(b"SREM", tag, id);
        }
        if !tags.is_empty() {
            self.link.all()?;
        }
        Ok(Found::Yes)
    }

    fn clean(&mut self, mode: CleanMode, tags: &[String]) -> Result<(), StoreError> {
        let tags = unique(tags);
        expect_names(tags.iter().copied())?;
        match mode {
            CleanMode::All => self.clear(),
            CleanMode::MatchingAnyTag => self.invalidate(&tags),
            CleanMode::Old | CleanMode::MatchingTag | CleanMode::NotMatchingTag => {
                let message = "RedisTagAwareAdapter only removes all records or those with any \
                               tag, and collects no old ones (expected a clean of all or by any \
                               tag)";
                Err(StoreError::soft(ErrorClass::Other, message))
            }
        }
    }

    fn stale_members(&mut self) -> Result<Option<u64>, StoreError> {
        let index = Index { sets: &[NAMESPACE, TAG, b"*"], scan: "SSCAN", record_prefix: b"" };
        stale_members(&mut self.link, &index).map(Some)
    }

    fn effort(&self) -> Effort {
        self.link.effort()
    }
}

//! Symfony's `TagAwareAdapter` on its `MemcachedAdapter` (symfony/cache 7.1) through the binary
//! protocol, set up as by `MemcachedAdapter::createConnection`, with values serialized by PHP.
//!
//! Keys start with five characters and a colon: the namespace version, which is stored under the
//! key `:`. An item is an object of the class `\xA9`: a key of six bytes (expiry time in seconds
//! since 1648206727, little-endian; two bytes with a tag bit and the creation time) with the value,
//! then tags with their versions, six random bytes each. A tag's version is stored under the tag
//! plus `\1tags\1`. A read fetches the item and, unless they were fetched within 0.15 s, its tags'
//! versions; if one is missing or differs, the item is a miss. Invalidating tags deletes their
//! versions, so its cost does not grow with the number of items.
//!
//! As in the adapter: an item is read before it is saved; a missing item is looked up once more
//! under the name that versions before 6.1 gave to tags; deletions are repeated if one of them
//! found something; a clean of all records chooses a new namespace version. Unlike the adapter,
//! reserved characters in an ID are rejected even if PHP's assertions are off.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::{Endpoint, ErrorClass};
use twox_hash::XxHash3_128;
use workloads::app_cache::{CleanMode, Effort, Record, TaggedCache};
use workloads::store::{Found, StoreError};

use super::binary::Binary;
use super::requests::KEY_BYTES_MAX;
use crate::cache::{Random, now_s};
use crate::fault;
use crate::php::Value;

/// Key of the namespace version.
const SPACE: &[u8] = b":";
/// Suffix of a tag in the key of its version.
const TAG_SUFFIX: &str = "\x01tags\x01";
/// Former prefix of an item's key in the key of its tags' versions.
const OLD_PREFIX: &str = "\0tags\0";
/// Class of items, and the packing of their times (`Traits/ValueWrapper.php`).
const CLASS: &[u8] = b"\xa9";
const EXPIRY_OFFSET: i64 = 1_648_206_727;
const NO_EXPIRY: i64 = i32::MAX as i64;
/// No creation time, and the bit for following tags.
const PACKED: [u8; 2] = [0x40 | 0x80, 0x1e];
/// How long a tag's version is reused.
const KNOWN_FOR: Duration = Duration::from_millis(150);
/// Cached versions before expired ones are dropped.
const KNOWN_MAX: usize = 10_000;
/// Longest lifetime that memcached does not interpret as a date.
const LIFETIME_S_MAX: u64 = 30 * 86_400;
const RESERVED: [char; 8] = ['{', '}', '(', ')', '/', '\\', '@', ':'];

pub(crate) struct Symfony {
    binary: Binary,
    dice: Random,
    /// Namespace version; empty until it is fetched.
    space: String,
    /// Cached versions of tags, with their expiry times.
    known: HashMap<String, (Instant, Vec<u8>)>,
}

/// The namespace version for a number.
fn space_version(number: u32) -> String {
    let mut text = STANDARD.encode(number.to_le_bytes());
    text.truncate(5);
    text.replace('/', "_") + ":"
}

/// Encodes a key for the wire: replaces characters that memcached does not accept.
fn encoded(key: &str) -> Vec<u8> {
    let byte = |byte| match byte {
        b' ' => b'@',
        b'\n' => b'(',
        b'\r' => b')',
        b'\t' => b'\\',
        b'\x0b' => b'{',
        b'\x0c' => b'}',
        b'\0' => b'/',
        byte => byte,
    };
    key.bytes().map(byte).collect()
}

/// The stored name of a key: the namespace version followed by the key, or by its hash if that is
/// too long.
fn name(space: &str, key: &str) -> Vec<u8> {
    let mut name = [space, key].concat();
    if name.len() > KEY_BYTES_MAX {
        let mut hash = STANDARD.encode(XxHash3_128::oneshot(key.as_bytes()).to_be_bytes());
        hash.truncate(hash.len() - space.len() - 2);
        name = [space, &hash, ":"].concat();
    }
    encoded(&name)
}

/// Serializes an item. `expiry` is in seconds since 1970.
fn item(value: &[u8], tags: &[(String, Vec<u8>)], expiry: Option<i64>) -> Vec<u8> {
    let expiry = expiry.map_or(NO_EXPIRY, |expiry| expiry - EXPIRY_OFFSET) as u32;
    let mut pack = [0; 6];
    pack[..4].copy_from_slice(&expiry.to_le_bytes());
    pack[4..].copy_from_slice(&PACKED);
    let mut entries = vec![(Value::Str(&pack), Value::Str(value))];
    entries.extend(tags.iter().map(|(tag, version)| (Value::key(tag), Value::Str(version))));
    let mut out = Vec::with_capacity(value.len() + 64);
    Value::Array(Some(CLASS), entries).write(&mut out);
    out
}

/// Tags with their versions.
type Versions<'a> = Vec<(String, &'a [u8])>;

/// Parses the value and tags of an item; `None` if it is not an item with tags.
fn read_item(bytes: &[u8]) -> Option<(&[u8], Versions<'_>)> {
    let Value::Array(Some(CLASS), entries) = Value::read(bytes)? else { return None };
    let ((pack, value), tags) = entries.split_first()?;
    pack.str().filter(|pack| pack.len() == 6 && pack[4] & 0x80 != 0)?;
    let mut read = Vec::with_capacity(tags.len());
    for (tag, version) in tags {
        let tag = match tag {
            Value::Int(number) => number.to_string(),
            tag => String::from_utf8_lossy(tag.str()?).into_owned(),
        };
        read.push((tag, version.str()?));
    }
    Some((value.str()?, read))
}

/// A string as serialized by PHP.
fn serialized(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Value::Str(bytes).write(&mut out);
    out
}

fn check_word(what: &str, word: &str) -> Result<(), StoreError> {
    if !word.is_empty() && !word.contains(RESERVED) {
        return Ok(());
    }
    let word = fault::printable(word.as_bytes());
    let message =
        format!("{what} `{word}` is rejected (expected some characters, none of {{}}()/\\@:)");
    Err(StoreError::soft(ErrorClass::Other, message))
}

impl Symfony {
    /// Connects and waits for one reply.
    pub(crate) fn connect(endpoint: &Endpoint, timeout: Duration) -> Result<Self, StoreError> {
        let binary = Binary::connect(endpoint, timeout)?;
        Ok(Self { binary, dice: Random::new(), space: String::new(), known: HashMap::new() })
    }

    /// The stored name of a key. Fetches the namespace version the first time.
    fn name(&mut self, key: &str) -> Result<Vec<u8>, StoreError> {
        if self.space.is_empty() {
            let stored = self.binary.get_each(&[SPACE])?.pop().flatten();
            let value = stored.as_deref().and_then(Value::read);
            let version = value.as_ref().and_then(Value::str).map(String::from_utf8_lossy);
            match version {
                Some(version) if !version.is_empty() => self.space = version.into_owned(),
                _ => self.choose_space(now_s() as u32)?,
            }
        }
        Ok(name(&self.space, key))
    }

    fn choose_space(&mut self, number: u32) -> Result<(), StoreError> {
        let version = space_version(number);
        self.binary.set(SPACE, 0, &serialized(version.as_bytes()))?;
        self.space = version;
        Ok(())
    }

    fn tag_name(&mut self, tag: &str) -> Result<Vec<u8>, StoreError> {
        self.name(&[tag, TAG_SUFFIX].concat())
    }

    /// Fetches and caches the versions of tags, in their order.
    fn fetch<'t>(
        &mut self,
        tags: impl Iterator<Item = &'t str> + Clone,
    ) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let now = Instant::now();
        let names = tags.clone().map(|tag| self.tag_name(tag)).collect::<Result<Vec<_>, _>>()?;
        let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
        let stored = self.binary.get_each(&names)?;
        let version = |bytes: Vec<u8>| Value::read(&bytes)?.str().map(<[u8]>::to_vec);
        let versions: Vec<_> = stored.into_iter().map(|bytes| bytes.and_then(version)).collect();
        if self.known.len() > KNOWN_MAX {
            self.known.retain(|_, (until, _)| now <= *until);
        }
        for (tag, version) in tags.zip(&versions) {
            if let Some(version) = version {
                self.known.insert(tag.into(), (now + KNOWN_FOR, version.clone()));
            } else {
                self.known.remove(tag);
            }
        }
        Ok(versions)
    }

    /// Versions of an item's tags. Creates missing ones, all with the same version in one save.
    fn versions(&mut self, tags: &[String]) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        let mut each: Vec<&str> = Vec::new();
        for tag in tags {
            check_word("tag", tag)?;
            if !each.contains(&tag.as_str()) {
                each.push(tag);
            }
        }
        if each.is_empty() {
            return Ok(Vec::new());
        }
        let fresh = self.dice.next().to_le_bytes()[..6].to_vec();
        let until = Instant::now() + KNOWN_FOR;
        let fetched = self.fetch(each.iter().copied())?;
        let mut missing: Vec<&str> =
            each.iter().zip(&fetched).filter(|(_, v)| v.is_none()).map(|(tag, _)| *tag).collect();
        missing.sort_unstable();
        for tag in missing {
            let name = self.tag_name(tag)?;
            self.binary.set(&name, 0, &serialized(&fresh))?;
            self.known.insert(tag.into(), (until, fresh.clone()));
        }
        let versions = fetched.into_iter().map(|version| version.unwrap_or_else(|| fresh.clone()));
        Ok(each.into_iter().map(String::from).zip(versions).collect())
    }

    /// True if every tag still has the version with which the item was saved.
    fn is_valid(&mut self, tags: &[(String, &[u8])]) -> Result<bool, StoreError> {
        let now = Instant::now();
        let is_known = |(tag, version): &(String, &[u8])| {
            self.known.get(tag).is_some_and(|(until, known)| now <= *until && known == version)
        };
        if tags.iter().all(is_known) {
            return Ok(true);
        }
        let versions = self.fetch(tags.iter().map(|(tag, _)| tag.as_str()))?;
        Ok(tags.iter().zip(versions).all(|((_, saved), now)| now.as_deref() == Some(saved)))
    }

    /// Deletes keys and returns true if any existed. In that case all are deleted again, since the
    /// adapter interprets the extension's result as an error.
    fn delete_each(&mut self, names: &[Vec<u8>]) -> Result<bool, StoreError> {
        let mut was_there = false;
        for name in names {
            was_there |= self.binary.delete(name)? == Found::Yes;
        }
        if was_there {
            for name in names {
                self.binary.delete(name)?;
            }
        }
        Ok(was_there)
    }
}

impl TaggedCache for Symfony {
    fn load(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Found, StoreError> {
        value.clear();
        check_word("id", id)?;
        let name = self.name(id)?;
        let stored = self.binary.get_each(&[&name])?.pop().flatten();
        let Some((found, tags)) = stored.as_deref().and_then(read_item) else {
            let old = self.name(&[OLD_PREFIX, id].concat())?;
            self.binary.get_each(&[&old])?;
            return Ok(Found::No);
        };
        if !self.is_valid(&tags)? {
            return Ok(Found::No);
        }
        value.extend_from_slice(found);
        Ok(Found::Yes)
    }

    fn save(&mut self, record: Record<'_>) -> Result<(), StoreError> {
        let Record { id, value, tags, lifetime_s } = record;
        self.load(id, &mut Vec::new())?;
        let versions = self.versions(tags)?;
        let expiry = lifetime_s.map(|s| now_s().saturating_add_unsigned(s));
        let ttl_s = match lifetime_s {
            Some(s) if s > LIFETIME_S_MAX => now_s().cast_unsigned().saturating_add(s),
            lifetime_s => lifetime_s.unwrap_or(0),
        };
        let name = self.name(id)?;
        self.binary.set(&name, ttl_s as u32, &item(value, &versions, expiry))
    }

    // Each client that finds no version of a tag creates one; the last one stored invalidates the
    // others.
    fn new_tags_race(&self) -> bool {
        true
    }

    fn remove(&mut self, id: &str) -> Result<Found, StoreError> {
        check_word("id", id)?;
        let names = [self.name(id)?, self.name(&[OLD_PREFIX, id].concat())?];
        Ok(if self.delete_each(&names)? { Found::Yes } else { Found::No })
    }

    /// Tags can only be invalidated individually, so cleans by several tags at once or by missing
    /// tags are not supported; memcached expires old records without help.
    fn clean(&mut self, mode: CleanMode, tags: &[String]) -> Result<(), StoreError> {
        match mode {
            CleanMode::All => {
                if self.space.is_empty() {
                    self.binary.get_each(&[SPACE])?;
                }
                let number = self.dice.next() as u32 >> 1;
                self.choose_space(number)
            }
            CleanMode::MatchingAnyTag => {
                for tag in tags {
                    check_word("tag", tag)?;
                    self.known.remove(tag);
                }
                let names =
                    tags.iter().map(|tag| self.tag_name(tag)).collect::<Result<Vec<_>, _>>()?;
                self.delete_each(&names).map(drop)
            }
            _ => {
                let message =
                    format!("`{mode:?}` is not supported (expected `All` or `MatchingAnyTag`)");
                Err(StoreError::soft(ErrorClass::Other, message))
            }
        }
    }

    fn effort(&self) -> Effort {
        self.binary.effort()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Items as written by Symfony 7.1 on PHP 8.2.
    #[test]
    fn items_match_symfony() {
        let version = b"\xc3\xb1\x83Zv\xac".to_vec();
        let tags = [("T1".to_string(), version.clone()), ("7".to_string(), version)];
        let written = b"O:1:\"\xa9\":3:{s:6:\"\xf6#\xc5\x08\xc0\x1e\";s:11:\"hello world\";\
            s:2:\"T1\";s:6:\"\xc3\xb1\x83Zv\xac\";i:7;s:6:\"\xc3\xb1\x83Zv\xac\";}";
        assert_eq!(item(b"hello world", &tags, Some(1_795_344_253)), written);
        let (value, read) = read_item(written).unwrap();
        assert_eq!((value, read[1].0.as_str()), (&b"hello world"[..], "7"));
        let endless = item(b"hello", &[], None);
        assert_eq!(endless, b"O:1:\"\xa9\":1:{s:6:\"\xff\xff\xff\x7f\xc0\x1e\";s:5:\"hello\";}");
        for foreign in [&b"s:1:\"a\";"[..], b"a:0:{}", b"O:1:\"\xa9\":0:{}", b""] {
            assert_eq!(read_item(foreign), None);
        }
    }

    #[test]
    fn names_match_symfony() {
        assert_eq!(space_version(1_795_337_053), "XasCa:");
        assert_eq!(name("XasCa:", "\0tags\0ABC"), b"XasCa:/tags/ABC");
        let long = name("XasCa:", &"x".repeat(250));
        assert_eq!(String::from_utf8(long).unwrap(), "XasCa:Aw+xq/eykIHZFUGf:");
    }
}

//! `Zend_Cache_Backend_File` of Zend Framework 1 (`Shardj/zf1-future`, 2024) with Magento's
//! settings: prefix `mage`, one level of directories with mode 0777, otherwise the defaults.
//!
//! A record is two files: `mage--H/mage---ID` with the value, and
//! `mage--H/mage---internal-metadatas---ID` with a serialized array of the value's `hash` (CRC-32),
//! `mtime`, `expire` (seconds since 1970; 9999999999 for never) and `tags`. `H` is the first digit
//! of the ID's Adler-32, which for short IDs is nearly always one of two.
//!
//! Files are opened for appending, locked, truncated, written and closed; nothing is renamed or
//! synced. Each client keeps the metadata of up to 100 records in memory and drops the oldest ten
//! when that is full. If another client has saved a record again, its hash does not match the one
//! in memory, and the record is removed, as in the original. A clean reads every record.
//!
//! Unlike the original, the mode of a file is set before it is closed instead of after; a link in
//! place of a file is not a record; directories are only one level deep; and tags that PHP
//! considers equal numbers (`1e1` and `10`) differ.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use model::ErrorClass;
use nix::fcntl::OFlag;
use nix::sys::stat::{Mode, fchmod};
use workloads::app_cache::{CleanMode, Effort, LoadEffect, Record, TaggedCache};
use workloads::store::{Found, StoreError};

use super::directory::{Directory, FILE_MODE, check_id};
use super::stream::Stream;
use super::tree::{At, Tree, wrong};
use crate::cache::{SlowLevel, expire_s, now_s};
use crate::php::Value;

/// Directories by the first digit of an ID's Adler-32.
const DIRS: [&str; 16] = [
    "mage--0", "mage--1", "mage--2", "mage--3", "mage--4", "mage--5", "mage--6", "mage--7",
    "mage--8", "mage--9", "mage--a", "mage--b", "mage--c", "mage--d", "mage--e", "mage--f",
];
/// Prefix of directories and files.
const GLOB: &str = "mage--";
const FILE: &str = "mage---";
/// Apparent prefix of an ID that is derived from a metadata file's name.
const METADATA: &str = "internal-metadatas---";
/// Records whose metadata a client keeps, and number of them dropped at once.
const MEMO_MAX: usize = 100;
const MEMO_DROPPED: usize = 10;

pub(crate) struct ZendFile {
    tree: Tree,
    timeout: Duration,
    memo: Memo,
}

/// A record's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Metadata {
    /// `None` if no number is stored, which no value matches.
    hash: Option<i64>,
    mtime: i64,
    expire: i64,
    tags: Vec<Box<[u8]>>,
}

impl Metadata {
    fn read(bytes: &[u8]) -> Option<Self> {
        let value = Value::read(bytes)?;
        let Value::Array(None, tags) = value.get("tags")? else { return None };
        let tags = tags.iter().filter_map(|(_, tag)| tag.str()).map(Box::from);
        Some(Self {
            hash: value.get("hash")?.int(),
            mtime: value.get("mtime")?.int()?,
            expire: value.get("expire")?.int()?,
            tags: tags.collect(),
        })
    }

    fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        Value::named([
            ("hash", self.hash.map_or(Value::Null, Value::Int)),
            ("mtime", Value::Int(self.mtime)),
            ("expire", Value::Int(self.expire)),
            ("tags", Value::list(self.tags.iter().map(|tag| Value::Str(tag)))),
        ])
        .write(&mut out);
        out
    }

    /// Whether a clean in that mode removes the record.
    fn is_matched(&self, mode: CleanMode, tags: &[String]) -> bool {
        let has = |tag: &String| self.tags.iter().any(|own| **own == *tag.as_bytes());
        match mode {
            CleanMode::All => true,
            CleanMode::Old => now_s() > self.expire,
            CleanMode::MatchingTag => tags.iter().all(has),
            CleanMode::NotMatchingTag => !tags.iter().any(has),
            CleanMode::MatchingAnyTag => tags.iter().any(has),
        }
    }
}

/// Cached metadata, in order of first use.
#[derive(Default)]
struct Memo {
    known: HashMap<String, Metadata>,
    order: VecDeque<String>,
}

impl Memo {
    /// Drops the oldest entries if the cache is full, even before an entry is only replaced.
    fn evict(&mut self) {
        if self.known.len() >= MEMO_MAX {
            for id in self.order.drain(..MEMO_DROPPED) {
                self.known.remove(&id);
            }
        }
    }

    fn keep(&mut self, id: &str, metadata: Metadata) {
        if self.known.insert(id.into(), metadata).is_none() {
            self.order.push_back(id.into());
        }
    }

    fn forget(&mut self, id: &str) {
        if self.known.remove(id).is_some() {
            self.order.retain(|kept| kept != id);
        }
    }
}

/// The directory of an ID.
fn dir(id: &str) -> &'static str {
    DIRS[(adler2::adler32_slice(id.as_bytes()) >> 28) as usize]
}

/// Whether this layout creates a directory of that name.
pub(super) fn is_cache_dir(name: &str) -> bool {
    DIRS.contains(&name)
}

fn value_name(id: &str) -> String {
    [FILE, id].concat()
}

fn metadata_name(id: &str) -> String {
    [FILE, METADATA, id].concat()
}

/// The ID in a file name, or the name itself if it contains none.
fn id_of(name: &str) -> &str {
    name.strip_prefix(FILE).unwrap_or(name)
}

fn hash(value: &[u8]) -> i64 {
    i64::from(crc32fast::hash(value))
}

impl ZendFile {
    pub(super) fn new(directory: Directory, timeout: Duration) -> Self {
        Self { tree: Tree::new(directory), timeout, memo: Memo::default() }
    }

    /// Reads a file into `content`, replacing its previous content.
    fn get(&mut self, at: At<'_>, content: &mut Vec<u8>) -> Result<Found, StoreError> {
        content.clear();
        if !self.tree.is_file(at) {
            return Ok(Found::No);
        }
        // An unreadable file counts as missing; a link can have replaced it.
        let Ok(file) = self.tree.open(at, OFlag::O_RDONLY, false) else { return Ok(Found::No) };
        let mut stream = Stream::new(file, at, false)?;
        stream.lock(false, self.timeout)?;
        stream.rest(content)?;
        stream.unlock()?;
        Ok(Found::Yes)
    }

    fn put(&mut self, at: At<'_>, content: &[u8]) -> Result<(), StoreError> {
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_APPEND;
        let file = self.tree.open(at, flags, false).map_err(|e| wrong("open", at, &e))?;
        let mut stream = Stream::new(file, at, true)?;
        stream.lock(true, self.timeout)?;
        stream.rewind()?;
        stream.truncate()?;
        stream.write(content)?;
        fchmod(stream.file(), FILE_MODE).map_err(|e| wrong("change the mode of", at, &e.into()))?;
        stream.close()?;
        self.tree.forget();
        Ok(())
    }

    /// Removes a file; false if it did not exist.
    fn unlink(&mut self, at: At<'_>) -> Result<bool, StoreError> {
        if self.tree.is_file(at) { self.tree.unlink(at) } else { Ok(false) }
    }

    /// A record's metadata, which is cached.
    fn metadata(&mut self, id: &str) -> Result<Option<&Metadata>, StoreError> {
        if !self.memo.known.contains_key(id) {
            let mut content = Vec::new();
            let name = metadata_name(id);
            self.get(At { dir: dir(id), name: &name }, &mut content)?;
            let Some(metadata) = Metadata::read(&content) else { return Ok(None) };
            self.memo.evict();
            self.memo.keep(id, metadata);
        }
        Ok(self.memo.known.get(id))
    }

    /// Removes both files of a record; false if one of them was missing.
    fn remove_record(&mut self, id: &str) -> Result<bool, StoreError> {
        let (value, metadata) = (value_name(id), metadata_name(id));
        let had_value = self.unlink(At { dir: dir(id), name: &value })?;
        self.memo.forget(id);
        Ok(self.unlink(At { dir: dir(id), name: &metadata })? && had_value)
    }

    fn is_dir(&mut self, dir: &str) -> bool {
        self.tree.forget();
        let name = if dir.is_empty() { "." } else { dir };
        self.tree.is_directory(At { dir: "", name })
    }

    /// Cleans a directory and its subdirectories; false if an expected file was missing.
    fn clean_dir(
        &mut self,
        dir: &str,
        mode: CleanMode,
        tags: &[String],
    ) -> Result<bool, StoreError> {
        if !self.is_dir(dir) {
            return Ok(false);
        }
        let mut complete = true;
        let mut metadata_files = Vec::new();
        for name in self.tree.glob(dir, GLOB) {
            let at = At { dir, name: &name };
            if self.tree.is_file(at) {
                let id = id_of(&name);
                if id.starts_with(METADATA) {
                    if mode == CleanMode::All {
                        metadata_files.push(name);
                    }
                    continue;
                }
                let is_matched = match self.metadata(id)? {
                    Some(metadata) => metadata.is_matched(mode, tags),
                    None => Metadata { hash: None, mtime: 1, expire: 1, tags: Vec::new() }
                        .is_matched(mode, tags),
                };
                // Once a record was incomplete, the original removes no further value in this
                // directory in this mode.
                if is_matched && (complete || mode != CleanMode::All) {
                    complete = self.remove_record(id)? && complete;
                }
            }
            if self.tree.is_directory(at) && dir.is_empty() {
                complete = self.clean_dir(&name, mode, tags)? && complete;
                if mode == CleanMode::All {
                    self.tree.remove_dir(&name);
                }
            }
        }
        for name in metadata_files {
            let at = At { dir, name: &name };
            if self.tree.exists(at) {
                complete = self.unlink(at)? && complete;
            }
        }
        Ok(complete)
    }

    /// IDs of the unexpired records in a directory and its subdirectories. Metadata files are
    /// treated as records that have no metadata.
    fn list_dir(
        &mut self,
        dir: &str,
        mode: CleanMode,
        tags: &[String],
        ids: &mut Vec<String>,
    ) -> Result<(), StoreError> {
        if !self.is_dir(dir) {
            return Ok(());
        }
        for name in self.tree.glob(dir, GLOB) {
            let at = At { dir, name: &name };
            if self.tree.is_file(at) {
                let id = id_of(&name);
                match self.metadata(id)? {
                    Some(metadata) if now_s() > metadata.expire => continue,
                    Some(metadata) if metadata.is_matched(mode, tags) => ids.push(id.into()),
                    Some(_) => {}
                    None => continue,
                }
            }
            if self.tree.is_directory(at) && dir.is_empty() {
                self.list_dir(&name, mode, tags, ids)?;
            }
        }
        Ok(())
    }
}

impl TaggedCache for ZendFile {
    fn load(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Found, StoreError> {
        check_id(id)?;
        value.clear();
        let expected = match self.metadata(id)? {
            Some(metadata) if now_s() <= metadata.expire => metadata.hash,
            _ => return Ok(Found::No),
        };
        let name = value_name(id);
        let found = self.get(At { dir: dir(id), name: &name }, value)?;
        if Some(hash(value)) != expected {
            self.remove_record(id)?;
            value.clear();
            return Ok(Found::No);
        }
        Ok(found)
    }

    fn save(&mut self, record: Record<'_>) -> Result<(), StoreError> {
        let Record { id, value, tags, lifetime_s } = record;
        check_id(id)?;
        self.tree.forget();
        let dir = dir(id);
        if !self.tree.is_writable(dir) {
            self.tree.make_dir(dir, Some(Mode::from_bits_truncate(0o777)));
        }
        if !self.tree.is_writable(dir) {
            let message = format!("directory `{dir}` of the cache cannot be created or written to");
            return Err(StoreError::soft(ErrorClass::Denied, message));
        }
        let metadata = Metadata {
            hash: Some(hash(value)),
            mtime: now_s(),
            expire: expire_s(lifetime_s),
            tags: tags.iter().map(|tag| tag.as_bytes().into()).collect(),
        };
        self.memo.evict();
        self.put(At { dir, name: &metadata_name(id) }, &metadata.write())?;
        self.memo.keep(id, metadata);
        self.put(At { dir, name: &value_name(id) }, value)
    }

    fn remove(&mut self, id: &str) -> Result<Found, StoreError> {
        check_id(id)?;
        Ok(if self.remove_record(id)? { Found::Yes } else { Found::No })
    }

    fn clean(&mut self, mode: CleanMode, tags: &[String]) -> Result<(), StoreError> {
        self.tree.forget();
        self.clean_dir("", mode, tags).map(drop)
    }

    // The cached hash can be that of an older value.
    fn load_effect(&self) -> LoadEffect {
        LoadEffect::Removes
    }

    fn effort(&self) -> Effort {
        Effort { files: self.tree.files(), ..Effort::default() }
    }
}

impl SlowLevel for ZendFile {
    fn ids(&mut self, mode: CleanMode, tags: &[String]) -> Result<Vec<String>, StoreError> {
        let mut ids = Vec::new();
        if !matches!(mode, CleanMode::All | CleanMode::Old) {
            self.list_dir("", mode, tags, &mut ids)?;
        }
        let mut seen = HashSet::new();
        ids.retain(|id| seen.insert(id.clone()));
        Ok(ids)
    }
}

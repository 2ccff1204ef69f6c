//! `Zend_Cache_Backend_File` of Zend Framework 1 (`Shardj/zf1-future`, 2024) with Magento's
//! settings: prefix `mage`, one level of directories of mode 0777, the rest as delivered.
//!
//! A record is two files: `mage--H/mage---ID` with the value, and
//! `mage--H/mage---internal-metadatas---ID` with a serialized array of the value's `hash` (CRC-32),
//! `mtime`, `expire` (seconds since 1970; 9999999999 for never) and `tags`. `H` is the first digit
//! of the id's Adler-32, which for short ids is nearly always one of two.
//!
//! Files are opened for appending, locked, truncated, written and closed; nothing is renamed or
//! synced. Each client keeps up to 100 metadata in memory and drops the oldest ten when that is
//! full; so another client's new value of a record has a hash that the client does not expect, and
//! the record is removed, as in the original. A clean looks at every record.
//!
//! Other than in the original: the mode of a file is set before it is closed and not after; a link
//! in the place of a file is no record; directories lie one level deep only; tags that PHP takes
//! for equal numbers (`1e1` and `10`) differ.

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

/// Directories by the first digit of an id's Adler-32.
const ROOMS: [&str; 16] = [
    "mage--0", "mage--1", "mage--2", "mage--3", "mage--4", "mage--5", "mage--6", "mage--7",
    "mage--8", "mage--9", "mage--a", "mage--b", "mage--c", "mage--d", "mage--e", "mage--f",
];
/// What names of directories and files begin with.
const GLOB: &str = "mage--";
const FILE: &str = "mage---";
/// What an id seems to begin with that is made of a metadata file's name.
const METADATA: &str = "internal-metadatas---";
/// Metadata that a client keeps, and how many of them it drops at once.
const MEMO_MAX: usize = 100;
const MEMO_DROPPED: usize = 10;

pub(crate) struct ZendFile {
    tree: Tree,
    timeout: Duration,
    memo: Memo,
}

/// What is known of a record besides its value.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Metadata {
    /// `None` where no number is stored, which no value has.
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

    /// Whether a clean of that mode removes the record.
    fn is_meant(&self, mode: CleanMode, tags: &[String]) -> bool {
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

/// Metadata in memory, in the order in which their records were first met.
#[derive(Default)]
struct Memo {
    known: HashMap<String, Metadata>,
    order: VecDeque<String>,
}

impl Memo {
    /// Makes room before something is kept, also where it replaces what is there.
    fn make_room(&mut self) {
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

/// The directory of an id.
fn room(id: &str) -> &'static str {
    ROOMS[(adler2::adler32_slice(id.as_bytes()) >> 28) as usize]
}

/// Whether a directory of that name is made here.
pub(super) fn is_room(name: &str) -> bool {
    ROOMS.contains(&name)
}

fn value_name(id: &str) -> String {
    [FILE, id].concat()
}

fn metadata_name(id: &str) -> String {
    [FILE, METADATA, id].concat()
}

/// The id that a file's name says, or the name where it says none.
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

    /// Reads a file into `content`, whose earlier content is replaced.
    fn get(&mut self, at: At<'_>, content: &mut Vec<u8>) -> Result<Found, StoreError> {
        content.clear();
        if !self.tree.is_file(at) {
            return Ok(Found::No);
        }
        // Unreadable is as good as missing; a link took the file's place since.
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

    /// Removes a file; false where there was none.
    fn unlink(&mut self, at: At<'_>) -> Result<bool, StoreError> {
        if self.tree.is_file(at) { self.tree.unlink(at) } else { Ok(false) }
    }

    /// What is known of a record; it is in memory afterwards.
    fn metadata(&mut self, id: &str) -> Result<Option<&Metadata>, StoreError> {
        if !self.memo.known.contains_key(id) {
            let mut content = Vec::new();
            let name = metadata_name(id);
            self.get(At { room: room(id), name: &name }, &mut content)?;
            let Some(metadata) = Metadata::read(&content) else { return Ok(None) };
            self.memo.make_room();
            self.memo.keep(id, metadata);
        }
        Ok(self.memo.known.get(id))
    }

    /// Removes both files of a record; false where one of them was missing.
    fn remove_record(&mut self, id: &str) -> Result<bool, StoreError> {
        let (value, metadata) = (value_name(id), metadata_name(id));
        let had_value = self.unlink(At { room: room(id), name: &value })?;
        self.memo.forget(id);
        Ok(self.unlink(At { room: room(id), name: &metadata })? && had_value)
    }

    fn is_room(&mut self, room: &str) -> bool {
        self.tree.forget();
        let name = if room.is_empty() { "." } else { room };
        self.tree.is_directory(At { room: "", name })
    }

    /// Cleans a directory and those in it; false where a file was missing that should have been
    /// there.
    fn clean_room(
        &mut self,
        room: &str,
        mode: CleanMode,
        tags: &[String],
    ) -> Result<bool, StoreError> {
        if !self.is_room(room) {
            return Ok(false);
        }
        let mut whole = true;
        let mut metadata_files = Vec::new();
        for name in self.tree.glob(room, GLOB) {
            let at = At { room, name: &name };
            if self.tree.is_file(at) {
                let id = id_of(&name);
                if id.starts_with(METADATA) {
                    if mode == CleanMode::All {
                        metadata_files.push(name);
                    }
                    continue;
                }
                let is_meant = match self.metadata(id)? {
                    Some(metadata) => metadata.is_meant(mode, tags),
                    None => Metadata { hash: None, mtime: 1, expire: 1, tags: Vec::new() }
                        .is_meant(mode, tags),
                };
                // Once a record was not whole, the original removes no further value of this
                // directory in this mode.
                if is_meant && (whole || mode != CleanMode::All) {
                    whole = self.remove_record(id)? && whole;
                }
            }
            if self.tree.is_directory(at) && room.is_empty() {
                whole = self.clean_room(&name, mode, tags)? && whole;
                if mode == CleanMode::All {
                    self.tree.remove_room(&name);
                }
            }
        }
        for name in metadata_files {
            let at = At { room, name: &name };
            if self.tree.exists(at) {
                whole = self.unlink(at)? && whole;
            }
        }
        Ok(whole)
    }

    /// Ids of a directory's records and of those in it that have not expired. Metadata files are
    /// taken for records, which have no metadata of their own.
    fn list_room(
        &mut self,
        room: &str,
        mode: CleanMode,
        tags: &[String],
        ids: &mut Vec<String>,
    ) -> Result<(), StoreError> {
        if !self.is_room(room) {
            return Ok(());
        }
        for name in self.tree.glob(room, GLOB) {
            let at = At { room, name: &name };
            if self.tree.is_file(at) {
                let id = id_of(&name);
                match self.metadata(id)? {
                    Some(metadata) if now_s() > metadata.expire => continue,
                    Some(metadata) if metadata.is_meant(mode, tags) => ids.push(id.into()),
                    Some(_) => {}
                    None => continue,
                }
            }
            if self.tree.is_directory(at) && room.is_empty() {
                self.list_room(&name, mode, tags, ids)?;
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
        let found = self.get(At { room: room(id), name: &name }, value)?;
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
        let room = room(id);
        if !self.tree.is_writable(room) {
            self.tree.make_room(room, Some(Mode::from_bits_truncate(0o777)));
        }
        if !self.tree.is_writable(room) {
            let message = format!("directory `{room}` of the cache cannot be made or written to");
            return Err(StoreError::soft(ErrorClass::Denied, message));
        }
        let metadata = Metadata {
            hash: Some(hash(value)),
            mtime: now_s(),
            expire: expire_s(lifetime_s),
            tags: tags.iter().map(|tag| tag.as_bytes().into()).collect(),
        };
        self.memo.make_room();
        self.put(At { room, name: &metadata_name(id) }, &metadata.write())?;
        self.memo.keep(id, metadata);
        self.put(At { room, name: &value_name(id) }, value)
    }

    fn remove(&mut self, id: &str) -> Result<Found, StoreError> {
        check_id(id)?;
        Ok(if self.remove_record(id)? { Found::Yes } else { Found::No })
    }

    fn clean(&mut self, mode: CleanMode, tags: &[String]) -> Result<(), StoreError> {
        self.tree.forget();
        self.clean_room("", mode, tags).map(drop)
    }

    // By the hash that it keeps in memory, of the value before.
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
            self.list_room("", mode, tags, &mut ids)?;
        }
        let mut met = HashSet::new();
        ids.retain(|id| met.insert(id.clone()));
        Ok(ids)
    }
}

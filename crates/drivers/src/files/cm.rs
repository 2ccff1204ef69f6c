//! `Cm_Cache_Backend_File` (`colinmollenhour/Cm_Cache_Backend_File`, state of 2023) with its own
//! settings.
//!
//! A record is one file, `cm--HH/cm---ID`: a line with a serialized array of `hash` (empty, as
//! values are not checked), `mtime`, `expire` (seconds since 1970; 9999999999 for never) and `tags`
//! joined by commas, then the value. `HH` are the last digits of the id's MD5. A tag is a file
//! `cm-tags/cm---TAG` of ids, each on a line of its own, to which every save appends; one in a
//! hundred appends to a file of more than 4,096 bytes writes it anew with each id once.
//!
//! Cleaning a tag empties its file and removes the records it names; their ids stay in the files of
//! their other tags. Nothing is renamed or synced; modes are those that `umask` leaves.
//!
//! Other than in the original: a link in the place of a file is no record and no tag, and an id or
//! a tag that is no file name is refused.

use std::collections::HashSet;
use std::time::Duration;

use md5::{Digest, Md5};
use model::ErrorClass;
use nix::fcntl::OFlag;
use workloads::app_cache::{CleanMode, Effort, Record, TaggedCache};
use workloads::store::{Found, StoreError};

use super::directory::{Directory, check_id};
use super::stream::Stream;
use super::tree::{At, Tree, wrong};
use crate::cache::{Dice, expire_s, now_s};
use crate::php::Value;

/// What names of directories of records begin with, and of files.
const GLOB: &str = "cm--";
const FILE: &str = "cm---";
/// The directory of tags.
const TAGS: &str = "cm-tags";
/// Files of tags above this size are written anew by one save in [`REWRITE_CHANCE`].
const REWRITE_BYTES: u64 = 4096;
const REWRITE_CHANCE: u64 = 100;

pub(crate) struct CmFile {
    tree: Tree,
    timeout: Duration,
    dice: Dice,
    /// Whether the directory of tags was looked for.
    tags_checked: bool,
}

/// What a record's first line says.
struct Metadata {
    expire: i64,
    tags: Vec<String>,
}

impl Metadata {
    fn read(line: &[u8]) -> Option<Self> {
        let value = Value::read(line)?;
        let tags = String::from_utf8_lossy(value.get("tags")?.str()?);
        let tags = tags.split(',').map(String::from).collect();
        Some(Self { expire: value.get("expire")?.int()?, tags })
    }
}

/// How the ids of a tag are changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Merge,
    Diff,
}

/// The directory of an id.
fn room(id: &str) -> String {
    let digest = Md5::digest(id.as_bytes());
    format!("{GLOB}{:02x}", digest[digest.len() - 1])
}

/// Whether a directory of that name is made here.
pub(super) fn is_room(name: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let digits = name.strip_prefix(GLOB).unwrap_or_default();
    name == TAGS || (digits.len() == 2 && digits.bytes().all(is_digit))
}

fn file_name(id: &str) -> String {
    [FILE, id].concat()
}

/// Each of the ids once, in the order in which they came.
fn unique(mut ids: Vec<String>) -> Vec<String> {
    let mut met = HashSet::new();
    ids.retain(|id| met.insert(id.clone()));
    ids
}

/// Ids of a tag's file; what stands behind the last line end was not written to its end.
fn ids_in(content: &[u8]) -> Vec<String> {
    let end = content.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    let text = String::from_utf8_lossy(&content[..end]);
    let blank = [' ', '\t', '\n', '\r', '\0', '\x0b'];
    let text = text.trim_matches(|c| blank.contains(&c));
    // PHP takes "0" for nothing.
    if text.is_empty() || text == "0" {
        return Vec::new();
    }
    text.split('\n').map(String::from).collect()
}

fn lines(ids: &[String]) -> Vec<u8> {
    (ids.join("\n") + "\n").into_bytes()
}

impl CmFile {
    pub(super) fn new(directory: Directory, timeout: Duration) -> Self {
        let tree = Tree::new(directory);
        Self { tree, timeout, dice: Dice::new(), tags_checked: false }
    }

    fn open(&mut self, at: At<'_>, flags: OFlag) -> Result<std::fs::File, StoreError> {
        let is_known = at.room == TAGS;
        self.tree.open(at, flags, is_known).map_err(|e| wrong("open", at, &e))
    }

    /// Metadata of a record and, where it is asked for, its value. `None` where it is missing or
    /// no record.
    fn get(
        &mut self,
        at: At<'_>,
        value: Option<&mut Vec<u8>>,
    ) -> Result<Option<Metadata>, StoreError> {
        if !self.tree.is_file(at) {
            return Ok(None);
        }
        let Ok(file) = self.open(at, OFlag::O_RDONLY) else { return Ok(None) };
        let mut stream = Stream::new(file, at, false)?;
        stream.lock(false, self.timeout)?;
        let line = stream.line()?;
        if let Some(value) = value
            && !line.is_empty()
        {
            stream.rest(value)?;
        }
        stream.unlock()?;
        Ok(Metadata::read(line.strip_suffix(b"\n").unwrap_or(&line)))
    }

    /// `file_put_contents` with `LOCK_EX`.
    fn put(&mut self, at: At<'_>, content: &[u8], appends: bool) -> Result<(), StoreError> {
        let append = if appends { OFlag::O_APPEND } else { OFlag::empty() };
        let file = self.open(at, OFlag::O_WRONLY | OFlag::O_CREAT | append)?;
        let mut stream = Stream::new(file, at, appends)?;
        stream.lock(true, self.timeout)?;
        if !appends {
            stream.truncate()?;
        }
        stream.write(content)?;
        stream.close()
    }

    /// The name of a tag's file in its directory, which exists afterwards.
    fn tag_name(&mut self, tag: &str) -> Result<String, StoreError> {
        if tag.contains(['/', '\0']) {
            let tag = crate::fault::words(tag.as_bytes());
            let message = format!("tag `{tag}` is no file name (expected neither `/` nor NUL)");
            return Err(StoreError::soft(ErrorClass::Other, message));
        }
        self.check_tags();
        Ok(file_name(tag))
    }

    fn check_tags(&mut self) {
        if !self.tags_checked {
            self.tree.make_room(TAGS, None);
            self.tags_checked = true;
        }
    }

    /// Ids of a tag, without its lock.
    fn ids_of(&mut self, tag: &str) -> Result<Vec<String>, StoreError> {
        let name = self.tag_name(tag)?;
        let at = At { room: TAGS, name: &name };
        if !self.tree.exists(at) {
            return Ok(Vec::new());
        }
        let Ok(file) = self.open(at, OFlag::O_RDONLY) else { return Ok(Vec::new()) };
        let mut content = Vec::new();
        Stream::new(file, at, false)?.rest(&mut content)?;
        Ok(ids_in(&content))
    }

    /// Opens a tag's file, reads its ids under the lock, and writes what `change` makes of it.
    fn rewrite(
        &mut self,
        at: At<'_>,
        change: impl FnOnce(&[String]) -> Option<Vec<u8>>,
    ) -> Result<Vec<String>, StoreError> {
        let file = self.open(at, OFlag::O_RDWR)?;
        let mut stream = Stream::new(file, at, false)?;
        stream.lock(true, self.timeout)?;
        let mut content = Vec::new();
        stream.rest(&mut content)?;
        let ids = ids_in(&content);
        if let Some(content) = change(&ids) {
            stream.rewind()?;
            stream.truncate()?;
            if !content.is_empty() {
                stream.write(&content)?;
            }
        }
        stream.unlock()?;
        stream.close()?;
        Ok(ids)
    }

    fn change_tags(
        &mut self,
        ids: &[String],
        tags: &[String],
        change: Change,
    ) -> Result<(), StoreError> {
        if ids.is_empty() {
            return Ok(());
        }
        for tag in tags {
            let name = self.tag_name(tag)?;
            let at = At { room: TAGS, name: &name };
            if !self.tree.exists(at) {
                if change == Change::Merge {
                    self.put(at, &lines(ids), false)?;
                }
            } else if change == Change::Diff {
                let gone: HashSet<&String> = ids.iter().collect();
                self.rewrite(at, |own| {
                    let left = own.iter().filter(|id| !gone.contains(id)).cloned();
                    Some(lines(&unique(left.collect())))
                })?;
            } else if self.dice.is_one_in(REWRITE_CHANCE) && self.tree.bytes(at) > REWRITE_BYTES {
                self.rewrite(at, |own| Some(lines(&unique([own, ids].concat()))))?;
            } else {
                self.put(at, &lines(ids), true)?;
            }
        }
        Ok(())
    }

    /// Ids of tags that were asked for with AND or OR, or of all records without them. OR empties
    /// the files of the tags.
    fn ids_by_tags(&mut self, mode: CleanMode, tags: &[String]) -> Result<Vec<String>, StoreError> {
        let mut ids = Vec::new();
        match (mode, tags) {
            (CleanMode::NotMatchingTag, _) => {
                ids = self.all_ids()?;
                for tag in tags {
                    if !ids.is_empty() {
                        let other: HashSet<String> = self.ids_of(tag)?.into_iter().collect();
                        ids.retain(|id| !other.contains(id));
                    }
                }
            }
            (CleanMode::MatchingTag, [first, others @ ..]) => {
                ids = self.ids_of(first)?;
                for tag in others {
                    if !ids.is_empty() {
                        let other: HashSet<String> = self.ids_of(tag)?.into_iter().collect();
                        ids.retain(|id| other.contains(id));
                    }
                }
            }
            _ => {
                for tag in tags {
                    let name = self.tag_name(tag)?;
                    let at = At { room: TAGS, name: &name };
                    if self.tree.is_file(at) {
                        ids.extend(self.rewrite(at, |_| Some(Vec::new()))?);
                    }
                }
            }
        }
        Ok(unique(ids))
    }

    /// Ids of all records that have not expired.
    fn all_ids(&mut self) -> Result<Vec<String>, StoreError> {
        let mut ids = Vec::new();
        for room in self.tree.glob("", GLOB) {
            if !self.tree.is_directory(At { room: "", name: &room }) {
                continue;
            }
            for name in self.tree.glob(&room, GLOB) {
                let Some(id) = name.strip_prefix(FILE) else { continue };
                let at = At { room: &room, name: &name };
                if self.get(at, None)?.is_some_and(|metadata| now_s() <= metadata.expire) {
                    ids.push(id.into());
                }
            }
        }
        Ok(unique(ids))
    }

    fn clean_by_tags(&mut self, mode: CleanMode, tags: &[String]) -> Result<(), StoreError> {
        let ids = self.ids_by_tags(mode, tags)?;
        if mode != CleanMode::MatchingAnyTag {
            self.change_tags(&ids, tags, Change::Diff)?;
        }
        for id in &ids {
            // A file of tags that others wrote to may name anything.
            if check_id(id).is_ok() {
                let (room, name) = (room(id), file_name(id));
                let at = At { room: &room, name: &name };
                if self.tree.is_file(at) {
                    self.tree.unlink(at)?;
                }
            }
        }
        Ok(())
    }

    fn clean_all(&mut self) -> Result<(), StoreError> {
        self.check_tags();
        for name in self.tree.glob(TAGS, FILE) {
            self.tree.unlink(At { room: TAGS, name: &name })?;
        }
        for room in self.tree.glob("", GLOB) {
            if !self.tree.is_directory(At { room: "", name: &room }) {
                continue;
            }
            for name in self.tree.glob(&room, GLOB) {
                let at = At { room: &room, name: &name };
                if self.tree.is_file(at) {
                    self.tree.unlink(at)?;
                }
            }
            self.tree.remove_room(&room);
        }
        Ok(())
    }

    /// Removes what has expired and what is no record, or not where it belongs.
    fn clean_old(&mut self) -> Result<(), StoreError> {
        for own_room in self.tree.glob("", GLOB) {
            if !self.tree.is_directory(At { room: "", name: &own_room }) {
                continue;
            }
            for name in self.tree.glob(&own_room, GLOB) {
                let at = At { room: &own_room, name: &name };
                if !self.tree.is_file(at) {
                    continue;
                }
                let id = name.strip_prefix(FILE).unwrap_or(&name);
                let metadata = if room(id) == own_room { self.get(at, None)? } else { None };
                match metadata {
                    Some(metadata) if now_s() > metadata.expire => {
                        self.tree.unlink(at)?;
                        self.change_tags(&[id.into()], &metadata.tags, Change::Diff)?;
                    }
                    Some(_) => {}
                    None => drop(self.tree.unlink(at)?),
                }
            }
        }
        Ok(())
    }
}

impl TaggedCache for CmFile {
    fn load(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Found, StoreError> {
        check_id(id)?;
        value.clear();
        let (room, name) = (room(id), file_name(id));
        let metadata = self.get(At { room: &room, name: &name }, Some(value))?;
        if metadata.is_some_and(|metadata| now_s() <= metadata.expire) {
            return Ok(Found::Yes);
        }
        value.clear();
        Ok(Found::No)
    }

    fn save(&mut self, record: Record<'_>) -> Result<(), StoreError> {
        let Record { id, value, tags, lifetime_s } = record;
        check_id(id)?;
        let room = room(id);
        if !self.tree.is_writable(&room) {
            self.tree.make_room(&room, None);
        }
        if !self.tree.is_writable(&room) {
            let message = format!("directory `{room}` of the cache cannot be made or written to");
            return Err(StoreError::soft(ErrorClass::Denied, message));
        }
        let joined = tags.join(",");
        let mut content = Vec::with_capacity(value.len() + joined.len() + 96);
        Value::named([
            ("hash", Value::Str(b"")),
            ("mtime", Value::Int(now_s())),
            ("expire", Value::Int(expire_s(lifetime_s))),
            ("tags", Value::Str(joined.as_bytes())),
        ])
        .write(&mut content);
        content.push(b'\n');
        content.extend_from_slice(value);
        self.put(At { room: &room, name: &file_name(id) }, &content, false)?;
        self.change_tags(&[id.into()], tags, Change::Merge)
    }

    fn remove(&mut self, id: &str) -> Result<Found, StoreError> {
        check_id(id)?;
        let (room, name) = (room(id), file_name(id));
        let at = At { room: &room, name: &name };
        let Some(metadata) = self.get(at, None)? else { return Ok(Found::No) };
        let was_there = self.tree.unlink(at)?;
        self.change_tags(&[id.into()], &metadata.tags, Change::Diff)?;
        Ok(if was_there { Found::Yes } else { Found::No })
    }

    fn clean(&mut self, mode: CleanMode, tags: &[String]) -> Result<(), StoreError> {
        self.tree.forget();
        match mode {
            CleanMode::All => self.clean_all(),
            CleanMode::Old => self.clean_old(),
            _ => self.clean_by_tags(mode, tags),
        }
    }

    fn stale_members(&mut self) -> Result<Option<u64>, StoreError> {
        let mut stale = 0;
        for name in self.tree.glob(TAGS, FILE) {
            let Some(tag) = name.strip_prefix(FILE) else { continue };
            for id in unique(self.ids_of(tag)?) {
                let (room, name) = (room(&id), file_name(&id));
                stale += u64::from(!self.tree.exists(At { room: &room, name: &name }));
            }
        }
        Ok(Some(stale))
    }

    fn effort(&self) -> Effort {
        Effort { files: self.tree.files(), ..Effort::default() }
    }
}

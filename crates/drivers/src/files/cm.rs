//! `Cm_Cache_Backend_File` (`colinmollenhour/Cm_Cache_Backend_File`, as of 2023) with its own
//! defaults, or those of Magento 2's factory: the prefix `mage` in place of `cm`, and one digit in
//! place of two (`App/Cache/Frontend/Factory.php` of Magento 2.4).
//!
//! A record is one file, `cm--HH/cm---ID`: a line with a serialized array of `hash` (empty, as
//! values are not checked), `mtime`, `expire` (seconds since 1970; 9999999999 for never) and `tags`
//! joined by commas, then the value. `HH` are the last two digits of the ID's MD5. A tag is a file
//! `cm-tags/cm---TAG` with one ID per line, to which every save appends. One in a hundred saves
//! rewrites a file of more than 4,096 bytes without duplicates.
//!
//! Cleaning a tag empties its file and removes the records listed in it; their IDs stay in the
//! files of their other tags. Nothing is renamed or synced; file modes follow `umask`.
//!
//! Unlike the original, a link in place of a file is neither a record nor a tag, and an ID or a tag
//! that is not a valid file name is rejected.

use std::collections::HashSet;
use std::time::Duration;

use md5::{Digest, Md5};
use model::{ErrorClass, Magento};
use nix::fcntl::OFlag;
use workloads::app_cache::{CleanMode, Effort, Record, TaggedCache};
use workloads::store::{Found, StoreError};

use super::directory::{Directory, check_id};
use super::stream::Stream;
use super::tree::{At, Tree, wrong};
use crate::cache::{Random, expire_s, now_s};
use crate::php::Value;

/// Names that depend on the backend's options.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    /// Prefix of record directories, and of files.
    glob: &'static str,
    file: &'static str,
    /// The directory of tag files.
    tags: &'static str,
    /// Digits of an ID's hash in the name of its directory.
    digits: usize,
}

/// With the backend's own defaults.
const CM: Layout = Layout { glob: "cm--", file: "cm---", tags: "cm-tags", digits: 2 };
/// As Magento 2's factory configures it.
const MAGENTO_2: Layout = Layout { glob: "mage--", file: "mage---", tags: "mage-tags", digits: 1 };

/// Tag files above this size are rewritten by one save in [`REWRITE_CHANCE`].
const REWRITE_BYTES: u64 = 4096;
const REWRITE_CHANCE: u64 = 100;

pub(crate) struct CmFile {
    tree: Tree,
    layout: Layout,
    timeout: Duration,
    dice: Random,
    /// Whether the directory of tag files has been checked.
    tags_checked: bool,
}

/// Contents of a record's first line.
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

/// A change to the IDs of a tag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Merge,
    Diff,
}

impl Layout {
    /// The backend's names under this layer.
    pub(super) fn of(layer: Magento) -> Self {
        match layer {
            Magento::None | Magento::One => CM,
            Magento::Two => MAGENTO_2,
        }
    }

    /// The directory of an ID.
    fn dir(self, id: &str) -> String {
        let digest = Md5::digest(id.as_bytes());
        let hash = format!("{:02x}", digest[digest.len() - 1]);
        [self.glob, &hash[hash.len() - self.digits..]].concat()
    }

    fn file_name(self, id: &str) -> String {
        [self.file, id].concat()
    }

    fn is_dir(self, name: &str) -> bool {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let digits = name.strip_prefix(self.glob).unwrap_or_default();
        name == self.tags || (digits.len() == self.digits && digits.bytes().all(is_digit))
    }
}

/// Whether this layout creates a directory of that name.
pub(super) fn is_cache_dir(name: &str) -> bool {
    CM.is_dir(name) || MAGENTO_2.is_dir(name)
}

/// Removes duplicate IDs and keeps their order.
fn unique(mut ids: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    ids.retain(|id| seen.insert(id.clone()));
    ids
}

/// IDs in a tag file; an incomplete last line is ignored.
fn ids_in(content: &[u8]) -> Vec<String> {
    let end = content.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    let text = String::from_utf8_lossy(&content[..end]);
    let blank = [' ', '\t', '\n', '\r', '\0', '\x0b'];
    let text = text.trim_matches(|c| blank.contains(&c));
    // PHP treats "0" as empty.
    if text.is_empty() || text == "0" {
        return Vec::new();
    }
    text.split('\n').map(String::from).collect()
}

fn lines(ids: &[String]) -> Vec<u8> {
    (ids.join("\n") + "\n").into_bytes()
}

impl CmFile {
    pub(super) fn new(directory: Directory, timeout: Duration, layout: Layout) -> Self {
        let tree = Tree::new(directory);
        Self { tree, layout, timeout, dice: Random::new(), tags_checked: false }
    }

    fn open(&mut self, at: At<'_>, flags: OFlag) -> Result<std::fs::File, StoreError> {
        let is_known = at.dir == self.layout.tags;
        self.tree.open(at, flags, is_known).map_err(|e| wrong("open", at, &e))
    }

    /// Metadata of a record and, if requested, its value. `None` if the file is missing or not a
    /// record.
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

    /// The name of a tag's file. Creates the directory of tag files if needed.
    fn tag_name(&mut self, tag: &str) -> Result<String, StoreError> {
        if tag.contains(['/', '\0']) {
            let tag = crate::fault::printable(tag.as_bytes());
            let message =
                format!("tag `{tag}` is not a valid file name (expected neither `/` nor NUL)");
            return Err(StoreError::soft(ErrorClass::Other, message));
        }
        self.check_tags();
        Ok(self.layout.file_name(tag))
    }

    fn check_tags(&mut self) {
        if !self.tags_checked {
            self.tree.make_dir(self.layout.tags, None);
            self.tags_checked = true;
        }
    }

    /// IDs of a tag, read without its lock.
    fn ids_of(&mut self, tag: &str) -> Result<Vec<String>, StoreError> {
        let name = self.tag_name(tag)?;
        let at = At { dir: self.layout.tags, name: &name };
        if !self.tree.exists(at) {
            return Ok(Vec::new());
        }
        let Ok(file) = self.open(at, OFlag::O_RDONLY) else { return Ok(Vec::new()) };
        let mut content = Vec::new();
        Stream::new(file, at, false)?.rest(&mut content)?;
        Ok(ids_in(&content))
    }

    /// Opens a tag's file, reads its IDs under the lock and writes the result of `change`.
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
            let at = At { dir: self.layout.tags, name: &name };
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

    /// IDs of the records that match tags by AND or OR, or of all records without the tags. OR also
    /// empties the files of the tags.
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
                    let at = At { dir: self.layout.tags, name: &name };
                    if self.tree.is_file(at) {
                        ids.extend(self.rewrite(at, |_| Some(Vec::new()))?);
                    }
                }
            }
        }
        Ok(unique(ids))
    }

    /// IDs of all unexpired records.
    fn all_ids(&mut self) -> Result<Vec<String>, StoreError> {
        let mut ids = Vec::new();
        for dir in self.tree.glob("", self.layout.glob) {
            if !self.tree.is_directory(At { dir: "", name: &dir }) {
                continue;
            }
            for name in self.tree.glob(&dir, self.layout.glob) {
                let Some(id) = name.strip_prefix(self.layout.file) else { continue };
                let at = At { dir: &dir, name: &name };
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
            // A tag file written by another program can contain any text.
            if check_id(id).is_ok() {
                let (dir, name) = (self.layout.dir(id), self.layout.file_name(id));
                let at = At { dir: &dir, name: &name };
                if self.tree.is_file(at) {
                    self.tree.unlink(at)?;
                }
            }
        }
        Ok(())
    }

    fn clean_all(&mut self) -> Result<(), StoreError> {
        self.check_tags();
        for name in self.tree.glob(self.layout.tags, self.layout.file) {
            self.tree.unlink(At { dir: self.layout.tags, name: &name })?;
        }
        for dir in self.tree.glob("", self.layout.glob) {
            if !self.tree.is_directory(At { dir: "", name: &dir }) {
                continue;
            }
            for name in self.tree.glob(&dir, self.layout.glob) {
                let at = At { dir: &dir, name: &name };
                if self.tree.is_file(at) {
                    self.tree.unlink(at)?;
                }
            }
            self.tree.remove_dir(&dir);
        }
        Ok(())
    }

    /// Removes expired records, and files that are not records or in the wrong directory.
    fn clean_old(&mut self) -> Result<(), StoreError> {
        for own_dir in self.tree.glob("", self.layout.glob) {
            if !self.tree.is_directory(At { dir: "", name: &own_dir }) {
                continue;
            }
            for name in self.tree.glob(&own_dir, self.layout.glob) {
                let at = At { dir: &own_dir, name: &name };
                if !self.tree.is_file(at) {
                    continue;
                }
                let id = name.strip_prefix(self.layout.file).unwrap_or(&name);
                let metadata =
                    if self.layout.dir(id) == own_dir { self.get(at, None)? } else { None };
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
        let (dir, name) = (self.layout.dir(id), self.layout.file_name(id));
        let metadata = self.get(At { dir: &dir, name: &name }, Some(value))?;
        if metadata.is_some_and(|metadata| now_s() <= metadata.expire) {
            return Ok(Found::Yes);
        }
        value.clear();
        Ok(Found::No)
    }

    fn save(&mut self, record: Record<'_>) -> Result<(), StoreError> {
        let Record { id, value, tags, lifetime_s } = record;
        check_id(id)?;
        let dir = self.layout.dir(id);
        if !self.tree.is_writable(&dir) {
            self.tree.make_dir(&dir, None);
        }
        if !self.tree.is_writable(&dir) {
            let message = format!("directory `{dir}` of the cache cannot be created or written to");
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
        self.put(At { dir: &dir, name: &self.layout.file_name(id) }, &content, false)?;
        self.change_tags(&[id.into()], tags, Change::Merge)
    }

    fn remove(&mut self, id: &str) -> Result<Found, StoreError> {
        check_id(id)?;
        let (dir, name) = (self.layout.dir(id), self.layout.file_name(id));
        let at = At { dir: &dir, name: &name };
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
        for name in self.tree.glob(self.layout.tags, self.layout.file) {
            let Some(tag) = name.strip_prefix(self.layout.file) else { continue };
            for id in unique(self.ids_of(tag)?) {
                let (dir, name) = (self.layout.dir(&id), self.layout.file_name(&id));
                stale += u64::from(!self.tree.exists(At { dir: &dir, name: &name }));
            }
        }
        Ok(Some(stale))
    }

    fn effort(&self) -> Effort {
        Effort { files: self.tree.files(), ..Effort::default() }
    }
}

//! The layout of Symfony's `FilesystemTagAwareAdapter` (symfony/cache 6.3 to 7.2), with values
//! serialized by PHP.
//!
//! | path below `cachedyno` | holds |
//! |---|---|
//! | `A/B/<20 characters>` | an item |
//! | `tags/A/B/<20 characters>/C/D/<20 characters>` | a tag's link to an item, an absolute path |
//!
//! An item is a line with its expiry (seconds since 1970; 0 for never), a line with its URL-encoded
//! ID, and the value with its tags ([`crate::symfony`]).
//!
//! Names are the base64 of a 128-bit hash of the adapter's class and the ID or tag, its first two
//! characters upper-case as directories; `cachedyno` is the pool's namespace.
//!
//! - Load: one file, which is removed if it is expired.
//! - Save: a load, since Symfony returns an item before it can be filled; a temporary file, whose
//!   time of modification becomes the expiry (a year from now for none) and which is renamed; then
//!   links for tags that the item did not have, and removal of links for those that it has no more.
//! - Remove: the file, and a link for each of its tags.
//! - Clean by any tag: the tag's folder is renamed, then the items behind its links, the links, and
//!   all directories that it could have. All: every item, then every tag's folder. Old: `prune`.
//!
//! An item that was cleaned by one of its tags leaves the links of its other tags; if it is saved
//! again, they lead to it again. Nothing is synced; modes follow `umask`.
//!
//! Versions before 6.3 hash with MD5 and name tags `\0tags\0`, so they find none of these files;
//! those before 6.1 also keep tags as keys. Unlike the original, an item that the adapter did not
//! write is a miss, links to anything but an item are removed alone, and reserved characters in an
//! ID are rejected even if PHP's assertions are off.

mod disk;
mod layout;
mod sweep;

use std::io;
use std::path::Path;

use model::ErrorClass;
use nix::errno::Errno;
use workloads::app_cache::{CleanMode, Effort, Record, TaggedCache};
use workloads::store::{Found, StoreError};

use super::tree::{At, wrong};
use crate::cache::{Random, now_s};
use crate::symfony::{behind_head, expect_names, join, read_tags, split, tags_bytes};
use crate::tags::unique;
use disk::Disk;

pub(super) use layout::is_cache_dir;

/// From now until the time of modification of an item that does not expire, seconds.
const YEAR_S: i64 = 31_556_952;
/// Bytes of a file that a removal reads at once.
const HEAD_BYTES: usize = 4096;

pub(crate) struct SymfonyFile {
    disk: Disk,
    dice: Random,
    /// Name of temporary files and part of renamed folders; empty until it is needed.
    random: String,
    content: Vec<u8>,
}

impl SymfonyFile {
    pub(super) fn open(directory: &Path) -> Result<Self, StoreError> {
        let (disk, dice) = (Disk::open(directory)?, Random::new());
        Ok(Self { disk, dice, random: String::new(), content: Vec::new() })
    }

    /// Draws the random name, unless it is known.
    fn draw(&mut self) {
        if self.random.is_empty() {
            self.random = layout::random_name(self.dice.next());
        }
    }

    /// `doFetch` of one item: reads its value with its tags into `content`. Returns whether it is
    /// there; one that is expired is removed.
    fn fetch(&mut self, id: &str, path: &str) -> Result<bool, StoreError> {
        self.content.clear();
        if !self.disk.is_file(path) {
            return Ok(false);
        }
        let Some(mut stream) = self.disk.read(path)? else { return Ok(false) };
        let expires = layout::expires(&stream.line()?);
        if expires != 0 && now_s() >= expires {
            drop(stream);
            self.disk.unlink(path);
            return Ok(false);
        }
        let line = stream.line()?;
        stream.rest(&mut self.content)?;
        Ok(line.trim_ascii_end() == layout::url_encoded(id).as_bytes())
    }

    /// Tags of an item; none if it is missing or not an item.
    fn tags_of(&mut self, id: &str, path: &str) -> Result<Vec<String>, StoreError> {
        if !self.fetch(id, path)? {
            return Ok(Vec::new());
        }
        Ok(split(&self.content).and_then(|parts| parts.tags()).unwrap_or_default())
    }

    /// Writes `content` to an item's file, by way of a temporary one.
    fn write(&mut self, path: &str, expires: i64) -> Result<(), StoreError> {
        self.disk.ensure_dir(layout::parent(path))?;
        let mtime = if expires == 0 { now_s() + YEAR_S } else { expires };
        self.draw();
        let mut created = self.disk.create(&self.random);
        if created.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::AlreadyExists) {
            self.random.clear();
            self.draw();
            created = self.disk.create(&self.random);
        }
        let at = At { dir: "", name: path };
        let file = created.map_err(|e| wrong("create", at, &e))?;
        let written = self.disk.fill(file, &self.random, &self.content, mtime).and_then(|()| {
            self.disk.rename(&self.random, path).map_err(|e| wrong("rename", at, &e.into()))
        });
        written.inspect_err(|_| {
            self.disk.unlink(&self.random);
        })
    }

    /// Links an item to a tag. If that fails, the item is removed; false if it fails because
    /// another client cleans the tag, which the adapter does not report to its user either.
    fn link(&mut self, tag: &str, item: &str) -> Result<bool, StoreError> {
        let link = layout::link(&layout::tag_folder(tag), item);
        let made = self.disk.ensure_dir(layout::parent(&link)).and_then(|()| {
            match self.disk.link(item, &link) {
                Err(Errno::EEXIST) if self.disk.is_link(&link) => Ok(true),
                Err(Errno::ENOENT) => Ok(false),
                Err(e) => Err(wrong("link", At { dir: "", name: &link }, &e.into())),
                Ok(()) => Ok(true),
            }
        });
        if !matches!(made, Ok(true)) {
            self.disk.unlink(item);
        }
        made
    }

    fn unlink(&mut self, tag: &str, item: &str) {
        self.disk.unlink(&layout::link(&layout::tag_folder(tag), item));
    }
}

impl TaggedCache for SymfonyFile {
    fn load(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Found, StoreError> {
        value.clear();
        expect_names([id])?;
        if !self.fetch(id, &layout::item(id))? {
            return Ok(Found::No);
        }
        let Some(parts) = split(&self.content) else { return Ok(Found::No) };
        value.extend_from_slice(parts.value);
        Ok(Found::Yes)
    }

    fn save(&mut self, record: Record<'_>) -> Result<(), StoreError> {
        let Record { id, value, lifetime_s, .. } = record;
        let tags = unique(record.tags);
        expect_names([id].iter().chain(&tags).copied())?;
        let item = layout::item(id);
        let before = self.tags_of(id, &item)?;
        let expires = match lifetime_s {
            Some(0) => {
                if self.disk.is_file(&item) {
                    self.disk.unlink(&item);
                }
                return Ok(());
            }
            Some(seconds) => now_s().saturating_add(i64::try_from(seconds).unwrap_or(i64::MAX)),
            None => 0,
        };
        self.content.clear();
        let head = format!("{expires}\n{}\n", layout::url_encoded(id));
        self.content.extend_from_slice(head.as_bytes());
        join(&tags, value, &mut self.content)?;
        self.write(&item, expires)?;
        for tag in tags.iter().filter(|tag| !before.iter().any(|had| had == *tag)) {
            if !self.link(tag, &item)? {
                break;
            }
        }
        for tag in before.iter().filter(|had| !tags.contains(&had.as_str())) {
            self.unlink(tag, &item);
        }
        Ok(())
    }

    /// The adapter does not report whether the item existed: always [`Found::Yes`].
    fn remove(&mut self, id: &str) -> Result<Found, StoreError> {
        expect_names([id])?;
        let item = layout::item(id);
        if !self.disk.is_file(&item) {
            return Ok(Found::Yes);
        }
        let Some(mut stream) = self.disk.read(&item)? else { return Ok(Found::Yes) };
        if !self.disk.unlink(&item) {
            return Ok(Found::Yes);
        }
        let head = stream.take(HEAD_BYTES)?;
        // The item after the lines with its expiry and ID.
        let item_bytes = head.splitn(3, |byte| *byte == b'\n').nth(2).unwrap_or_default();
        let mut tags = Vec::new();
        if let Some(bytes) = tags_bytes(item_bytes) {
            tags.extend_from_slice(behind_head(item_bytes));
            tags.truncate(bytes);
            if tags.len() < bytes {
                tags.append(&mut stream.take(bytes - tags.len())?);
            }
        }
        drop(stream);
        for tag in read_tags(&tags).unwrap_or_default() {
            self.unlink(&tag, &item);
        }
        Ok(Found::Yes)
    }

    fn clean(&mut self, mode: CleanMode, tags: &[String]) -> Result<(), StoreError> {
        let tags = unique(tags);
        expect_names(tags.iter().copied())?;
        match mode {
            CleanMode::All => {
                self.draw();
                sweep::clear(&mut self.disk, &self.random);
            }
            CleanMode::MatchingAnyTag => {
                self.draw();
                for tag in tags {
                    sweep::invalidate(&mut self.disk, &layout::tag_folder(tag), &self.random);
                }
            }
            CleanMode::Old => sweep::prune(&mut self.disk)?,
            CleanMode::MatchingTag | CleanMode::NotMatchingTag => {
                let message = "FilesystemTagAwareAdapter only removes all records, old ones, or \
                               those with any tag (expected one of these)";
                return Err(StoreError::soft(ErrorClass::Other, message));
            }
        }
        Ok(())
    }

    fn cleans_race(&self) -> bool {
        true
    }

    fn stale_members(&mut self) -> Result<Option<u64>, StoreError> {
        Ok(Some(sweep::stale_links(&mut self.disk)))
    }

    fn effort(&self) -> Effort {
        Effort { files: self.disk.files(), ..Effort::default() }
    }
}

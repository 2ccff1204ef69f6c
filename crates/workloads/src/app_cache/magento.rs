//! Magento's layer between a shop and the backend of its cache.
//!
//! Magento 1.x: ids and tags are converted to upper case, and every byte other than a letter, a
//! digit or `_` becomes `_`; then a prefix is added. Every save without the tag `CONFIG` gets
//! `MAGE` as its last tag. A save without a lifetime gets 7,200 s. After a save the record is
//! loaded back and compared; one that differs is removed (`write_control`).
//! (`Mage_Core_Model_Cache`, `Varien_Cache_Core` and `Zend_Cache_Core`.)
//!
//! Magento 2.x, for the cache that models are cleaned from (`Magento\Framework\App\Cache`): the
//! same, except that `.` becomes `__`, that every save gets `MAGE`, and that one without a lifetime
//! never expires. A clean by any of several tags cleans one after the other, each time the records
//! that carry both that tag and `MAGE`; so the backend intersects the tag's records with all
//! records. (`App/Cache/Frontend/Factory.php`, `Cache/Core.php`, `Cache/Frontend/Adapter/Zend.php`
//! and `Cache/Frontend/Decorator/TagScope.php` in `lib/internal/Magento/Framework`;
//! `app/etc/di.xml`.)

use md5::{Digest, Md5};
use model::Magento as Layer;

use super::data_set::hex_into;
use super::store::{CleanMode, Effort, LoadEffect, Record, TaggedCache};
use crate::store::{Found, StoreError};

/// Lifetime of a record that Magento 1 saves without one, seconds.
const LIFETIME_S: u64 = 7_200;
/// Tag of every record without [`CONFIG_TAG`].
const COMMON_TAG: &str = "MAGE";
/// The tag of the configuration cache.
const CONFIG_TAG: &str = "CONFIG";
/// Directory of a shop's configuration, from which Magento derives its prefix.
const CONFIGURATION: &str = "/var/www/magento/app/etc";

/// Result of a save.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saved {
    /// The backend stored it, and the record was as saved if it was loaded back.
    Kept,
    /// The record differed when it was loaded back (`Found::Yes`) or was missing, so it was
    /// removed.
    Removed(Found),
}

/// The cache as a shop calls it: a backend, with or without Magento's layer.
pub struct Magento {
    backend: Box<dyn TaggedCache>,
    layer: Layer,
    /// `None` without Magento's layer.
    prefix: Option<String>,
    id: String,
    tags: Vec<String>,
    loaded: Vec<u8>,
}

impl Magento {
    /// Puts Magento's layer over `backend`, or passes all calls through.
    pub fn new(backend: Box<dyn TaggedCache>, layer: Layer) -> Self {
        let prefix = match layer {
            Layer::None => None,
            Layer::One => Some(prefix_of(CONFIGURATION)),
            // Magento 2 writes the directory with a slash.
            Layer::Two => Some(prefix_of(&format!("{CONFIGURATION}/"))),
        };
        Self { backend, layer, prefix, id: String::new(), tags: Vec::new(), loaded: Vec::new() }
    }

    /// Loads a record into `value`, replacing its content.
    pub fn load(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Found, StoreError> {
        let Some(prefix) = &self.prefix else { return self.backend.load(id, value) };
        id_into(&mut self.id, (self.layer, prefix), id);
        self.backend.load(&self.id, value)
    }

    /// Saves a record. Without Magento's layer, a lifetime of `None` means no expiry.
    pub fn save(&mut self, record: Record<'_>) -> Result<Saved, StoreError> {
        if self.prefix.is_none() {
            return self.backend.save(record).map(|()| Saved::Kept);
        }
        let lifetime_s = self.convert(record.id, record.tags, record.lifetime_s);
        let converted = Record { id: &self.id, tags: &self.tags, lifetime_s, ..record };
        if let Err(e) = self.backend.save(converted) {
            // Zend_Cache removes the record, which may be incomplete; the first error is reported.
            let removed = if e.fatal { Ok(Found::No) } else { self.backend.remove(&self.id) };
            return Err(removed.err().filter(|other| other.fatal).unwrap_or(e));
        }
        let found = self.backend.load(&self.id, &mut self.loaded)?;
        if found == Found::Yes && self.loaded == record.value {
            return Ok(Saved::Kept);
        }
        self.backend.remove(&self.id)?;
        Ok(Saved::Removed(found))
    }

    /// Removes a record.
    pub fn remove(&mut self, id: &str) -> Result<Found, StoreError> {
        let Some(prefix) = &self.prefix else { return self.backend.remove(id) };
        id_into(&mut self.id, (self.layer, prefix), id);
        self.backend.remove(&self.id)
    }

    /// Whether all tags must be introduced before clients fill the cache concurrently.
    pub fn new_tags_race(&self) -> bool {
        self.backend.new_tags_race()
    }

    /// Whether a save loses its record if another client cleans one of its tags concurrently.
    pub fn cleans_race(&self) -> bool {
        self.backend.cleans_race()
    }

    /// Effect of a load on records that other clients save.
    pub fn load_effect(&self) -> LoadEffect {
        self.backend.load_effect()
    }

    /// Whether the backend needs a record's tags before it is loaded.
    pub fn needs_tags(&self) -> bool {
        self.backend.needs_tags()
    }

    /// Passes the tags of a record that another client saved to the backend.
    pub fn learn(&mut self, id: &str, tags: &[String]) {
        if self.prefix.is_none() {
            return self.backend.learn(id, tags);
        }
        self.convert(id, tags, None);
        self.backend.learn(&self.id, &self.tags);
    }

    /// Saves one of many records with [`TaggedCache::fill`], without loading it back.
    pub fn fill(&mut self, record: Record<'_>) -> Result<(), StoreError> {
        if self.prefix.is_none() {
            return self.backend.fill(record);
        }
        let lifetime_s = self.convert(record.id, record.tags, record.lifetime_s);
        self.backend.fill(Record { id: &self.id, tags: &self.tags, lifetime_s, ..record })
    }

    /// Ends a fill with [`TaggedCache::fill_end`].
    pub fn fill_end(&mut self) -> Result<(), StoreError> {
        self.backend.fill_end()
    }

    /// Converts id and tags of a record as the layer does; returns the lifetime that it sets.
    fn convert(&mut self, id: &str, tags: &[String], lifetime_s: Option<u64>) -> Option<u64> {
        let prefix = self.prefix.as_deref().unwrap_or_default();
        id_into(&mut self.id, (self.layer, prefix), id);
        let is_common = self.layer == Layer::Two || !tags.iter().any(|tag| tag == CONFIG_TAG);
        let common = is_common.then_some(COMMON_TAG);
        let tags = tags.iter().map(String::as_str).chain(common);
        tags_into(&mut self.tags, (self.layer, prefix), tags);
        lifetime_s.or(lifetime_of(self.layer))
    }

    /// Removes the records that carry at least one of the tags.
    pub fn clean(&mut self, tags: &[String]) -> Result<(), StoreError> {
        let Some(prefix) = &self.prefix else {
            return self.backend.clean(CleanMode::MatchingAnyTag, tags);
        };
        if self.layer == Layer::Two {
            let mut result = Ok(());
            for tag in tags {
                tags_into(&mut self.tags, (self.layer, prefix), [tag, COMMON_TAG].into_iter());
                match self.backend.clean(CleanMode::MatchingTag, &self.tags) {
                    Err(e) if e.fatal => return Err(e),
                    cleaned => result = result.and(cleaned),
                }
            }
            return result;
        }
        tags_into(&mut self.tags, (self.layer, prefix), tags.iter().map(String::as_str));
        self.backend.clean(CleanMode::MatchingAnyTag, &self.tags)
    }

    /// The value that the last save loaded back before it removed the record.
    pub fn loaded_back(&self) -> &[u8] {
        &self.loaded
    }

    /// Work caused in the stores since the backend was opened.
    pub fn effort(&self) -> Effort {
        self.backend.effort()
    }
}

/// Magento's prefix for a shop with its configuration in this directory: the first three
/// hexadecimal characters of the path's MD5, and `_`.
pub fn prefix_of(configuration: &str) -> String {
    let mut prefix = String::new();
    hex_into(&mut prefix, &Md5::digest(configuration.as_bytes()));
    prefix.truncate(3);
    prefix.push('_');
    prefix
}

/// Lifetime that a layer sets for a record without one, seconds; `None` for no expiry.
pub fn lifetime_of(layer: Layer) -> Option<u64> {
    (layer == Layer::One).then_some(LIFETIME_S)
}

/// Replaces `out` with the id or tag as passed to the backend.
fn id_into(out: &mut String, (layer, prefix): (Layer, &str), id: &str) {
    out.clear();
    out.push_str(prefix);
    for byte in id.bytes() {
        match byte {
            b'.' if layer == Layer::Two => out.push_str("__"),
            _ if byte.is_ascii_alphanumeric() => out.push(char::from(byte.to_ascii_uppercase())),
            _ => out.push('_'),
        }
    }
}

/// Replaces `out` with the tags as passed to the backend, reusing its strings.
fn tags_into<'a>(out: &mut Vec<String>, layer: (Layer, &str), tags: impl Iterator<Item = &'a str>) {
    let mut count = 0;
    for tag in tags {
        if out.len() == count {
            out.push(String::new());
        }
        id_into(&mut out[count], layer, tag);
        count += 1;
    }
    out.truncate(count);
}

#[cfg(test)]
#[path = "magento_tests.rs"]
mod tests;

//! The records of an application cache: keys, lengths, tags, lifetimes and how often each is used.
//!
//! A drawn data set is a pure function of (seed, record) and takes no memory. It follows Colin
//! Mollenhour's cache benchmark (magento-cache-benchmark, `init`): the key is the MD5 of the
//! record's number. The length and the number of tags are uniform; the tags are distinct and in
//! order. One record in six has its own lifetime of 10 to 14,400 s. Popularity and volatility are
//! uniform from 1 to 100. A data set read from the original's files is kept in memory.
//!
//! The original draws a record from a list that contains each one as often as its popularity says.
//! Here a record is drawn uniformly and accepted with probability popularity / 100, else drawn
//! again. That gives the same distribution without a list, in 1.98 draws on average.

use md5::{Digest, Md5};
use model::AppCache;
use std::collections::HashMap;
use std::fmt::Write as _;

use super::versions::value_of_version;
use crate::values::{mix, mix_in, pick};

/// Largest popularity and volatility; the smallest is 1.
const WEIGHT_MAX: u64 = 100;
/// One in this many records has its own lifetime.
const LIFETIME_ONE_IN: u64 = 6;
/// Shortest and longest lifetime of such a record, seconds.
const LIFETIME_S: (u64, u64) = (10, 14_400);

/// Properties that are drawn for a record, each from separate random numbers.
#[derive(Clone, Copy)]
enum Draw {
    Bytes = 1,
    TagCount,
    Tags,
    HasLifetime,
    Lifetime,
    Popularity,
    Volatility,
}

/// Weight by which a record is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// In proportion to how often it is read.
    Popularity,
    /// In proportion to how often it is written.
    Volatility,
}

/// A record of the original's `data.txt`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadRecord {
    /// Key without any prefix.
    pub key: String,
    /// Its value after the fill.
    pub data: String,
    /// Numbers of its tags, in the order of the file.
    pub tags: Vec<u64>,
    /// Its own lifetime in seconds; `None` for the software's default.
    pub expires_s: Option<u64>,
}

/// Records with their tags.
#[derive(Clone, Debug)]
pub struct DataSet {
    seed: u64,
    as_original: bool,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    Drawn { keys: u64, tags: u64, tags_of_record: (u64, u64), record_bytes: (u64, u64) },
    Read { records: Vec<ReadRecord>, tags: TagNames },
}

/// Tags by number and number by tag.
#[derive(Clone, Debug, Default)]
pub(crate) struct TagNames {
    names: Vec<String>,
    numbers: HashMap<String, u64>,
}

impl TagNames {
    /// Number of the tag; assigns a new one to a tag not seen before.
    pub(crate) fn number(&mut self, name: &str) -> u64 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.names.len() as u64;
        self.names.push(name.into());
        self.numbers.insert(name.into(), number);
        number
    }

    /// Number of tags.
    pub(crate) fn count(&self) -> u64 {
        self.names.len() as u64
    }

    /// The tag with this number.
    pub(crate) fn name(&self, number: u64) -> &str {
        &self.names[number as usize]
    }
}

impl DataSet {
    /// The data set of a workload. With `as_original`, a record that draws a single tag gets none,
    /// as in the original, because PHP gives a number instead of a list there; records are chosen
    /// by their weights, and some have their own lifetime. Without it, each record has as many tags
    /// as drawn, all records are equally likely, and none has its own lifetime.
    pub fn drawn(workload: &AppCache, seed: u64) -> Self {
        let AppCache { keys, tags, tags_of_record, record_bytes, as_original, .. } = *workload;
        let source = Source::Drawn { keys, tags, tags_of_record, record_bytes };
        Self { seed, as_original, source }
    }

    /// A data set read from files. `seed` determines the values of later versions.
    pub(crate) fn read(records: Vec<ReadRecord>, tags: TagNames, seed: u64) -> Self {
        Self { seed, as_original: true, source: Source::Read { records, tags } }
    }

    /// Number of records.
    pub fn keys(&self) -> u64 {
        match &self.source {
            Source::Drawn { keys, .. } => *keys,
            Source::Read { records, .. } => records.len() as u64,
        }
    }

    /// Number of tags, including those that no record carries.
    pub fn tags(&self) -> u64 {
        match &self.source {
            Source::Drawn { tags, .. } => *tags,
            Source::Read { tags, .. } => tags.count(),
        }
    }

    /// Appends the record's key: for a drawn record, the MD5 of its number from 0 as 32 lower-case
    /// hexadecimal characters.
    pub fn key_into(&self, out: &mut String, record: u64) {
        match &self.source {
            Source::Drawn { .. } => key_of_number(out, record),
            Source::Read { records, .. } => out.push_str(&records[record as usize].key),
        }
    }

    /// Appends the tag's name: for a drawn tag, `TAG_` and its number from 1, padded with zeros to
    /// the width of the last one.
    pub fn tag_into(&self, out: &mut String, tag: u64) {
        match &self.source {
            Source::Drawn { tags, .. } => {
                let width = tags.max(&1).ilog10() as usize + 1;
                let written = write!(out, "TAG_{:0width$}", tag + 1);
                debug_assert!(written.is_ok(), "writing to a String does not fail");
            }
            Source::Read { tags, .. } => out.push_str(tags.name(tag)),
        }
    }

    /// Length of the record's value, the same in every version.
    pub fn bytes(&self, record: u64) -> usize {
        match &self.source {
            Source::Drawn { record_bytes, .. } => {
                self.between(record, Draw::Bytes, *record_bytes) as usize
            }
            Source::Read { records, .. } => records[record as usize].data.len(),
        }
    }

    /// Replaces `out` with the numbers, from 0, of the record's tags.
    pub fn tags_of_into(&self, out: &mut Vec<u64>, record: u64) {
        out.clear();
        match &self.source {
            Source::Drawn { tags, tags_of_record, .. } => {
                let drawn = self.between(record, Draw::TagCount, *tags_of_record);
                let none = self.as_original && (drawn <= 1 || drawn > *tags);
                let count = if none { 0 } else { drawn.min(*tags) };
                distinct_into(out, self.draw(record, Draw::Tags), count, *tags);
            }
            Source::Read { records, .. } => out.extend(&records[record as usize].tags),
        }
    }

    /// The record's own lifetime in seconds; `None` for the software's default.
    pub fn expires_s(&self, record: u64) -> Option<u64> {
        match &self.source {
            Source::Drawn { .. } => {
                let drawn = pick(self.draw(record, Draw::HasLifetime), LIFETIME_ONE_IN) == 0;
                (self.as_original && drawn)
                    .then(|| self.between(record, Draw::Lifetime, LIFETIME_S))
            }
            Source::Read { records, .. } => records[record as usize].expires_s,
        }
    }

    /// Replaces `out` with a version of the record's value; version 0 is written by the fill.
    pub fn value_into(&self, out: &mut Vec<u8>, record: u64, version: u64) {
        match self.read_value(record).filter(|_| version == 0) {
            Some(data) => {
                out.clear();
                out.extend_from_slice(data);
            }
            None => value_of_version(out, self.seed, record, version, self.bytes(record)),
        }
    }

    /// Version 0 of a record that was read from a file.
    pub(crate) fn read_value(&self, record: u64) -> Option<&[u8]> {
        match &self.source {
            Source::Drawn { .. } => None,
            Source::Read { records, .. } => Some(records[record as usize].data.as_bytes()),
        }
    }

    /// Seed of the values.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// Chooses a record by its weight, or uniformly unless the data set is `as_original`, from a
    /// scattered number. The data set must not be empty.
    pub fn choose(&self, scattered: u64, choice: Choice) -> u64 {
        let mut state = scattered;
        loop {
            state = mix_in(state, 1);
            let record = pick(state, self.keys());
            if !self.as_original || pick(mix_in(state, 2), WEIGHT_MAX) < self.weight(record, choice)
            {
                return record;
            }
        }
    }

    /// How often a record is used in relation to others, 1 to 100.
    pub fn weight(&self, record: u64, choice: Choice) -> u64 {
        let draw = match choice {
            Choice::Popularity => Draw::Popularity,
            Choice::Volatility => Draw::Volatility,
        };
        self.between(record, draw, (1, WEIGHT_MAX))
    }

    fn draw(&self, record: u64, draw: Draw) -> u64 {
        mix(&[self.seed, record, draw as u64])
    }

    /// A uniform number in the range, including both ends.
    fn between(&self, record: u64, draw: Draw, (least, most): (u64, u64)) -> u64 {
        least + pick(self.draw(record, draw), most.saturating_sub(least) + 1)
    }
}

/// Appends the MD5 of a decimal number in hexadecimal.
fn key_of_number(out: &mut String, number: u64) {
    let digest = Md5::digest(number.to_string().as_bytes());
    hex_into(out, &digest);
}

/// Appends `bytes` in lower-case hexadecimal.
pub(crate) fn hex_into(out: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

/// Appends `count` distinct numbers below `below`, ascending, with every such set equally likely
/// (Floyd's method: Bentley, Floyd: A Sample of Brilliance, CACM 30, 1987).
fn distinct_into(out: &mut Vec<u64>, scattered: u64, count: u64, below: u64) {
    let mut state = scattered;
    for last in below - count..below {
        state = mix_in(state, last);
        let drawn = pick(state, last + 1);
        match out.binary_search(&drawn) {
            Err(place) => out.insert(place, drawn),
            // All numbers drawn so far are smaller than `last`.
            Ok(_) => out.push(last),
        }
    }
}

#[cfg(test)]
#[path = "data_set_tests.rs"]
mod tests;

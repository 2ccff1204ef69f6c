//! The records of an application cache: keys, lengths, tags, lifetimes, and how often each is used.
//!
//! A drawn data set is a pure function of (seed, record) and takes no memory. It follows Colin
//! Mollenhour's cache benchmark (magento-cache-benchmark, `init`): the key is the md5 of the
//! record's number, the length is uniform, the number of tags is uniform and the tags are distinct
//! and in order, one record in six has a lifetime of its own of 10 to 14,400 s, popularity and
//! volatility are uniform from 1 to 100. One that was read from the original's files keeps its
//! records in memory.
//!
//! The original draws a record from a list that holds each one as often as its popularity says.
//! Here a record is drawn uniformly and kept with the probability popularity / 100, else drawn
//! again: the same distribution without a list, in 1.98 draws on average.

use md5::{Digest, Md5};
use model::AppCache;
use std::collections::HashMap;
use std::fmt::Write as _;

use super::versions::value_of_version;
use crate::values::{mix, mix_in, pick};

/// Largest popularity and volatility; the smallest is 1.
const WEIGHT_MAX: u64 = 100;
/// One record in so many has a lifetime of its own.
const LIFETIME_ONE_IN: u64 = 6;
/// Shortest and longest lifetime of such a record, seconds.
const LIFETIME_S: (u64, u64) = (10, 14_400);

/// What is drawn of a record, each from numbers of its own.
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

/// By what a record is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// In proportion to how often it is read.
    Popularity,
    /// In proportion to how often it is written.
    Volatility,
}

/// A record as it stands in the original's `data.txt`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadRecord {
    /// Key without any prefix.
    pub key: String,
    /// The value with which it is filled.
    pub data: String,
    /// Numbers of its tags, in the order of the file.
    pub tags: Vec<u64>,
    /// Its own lifetime in seconds; `None` for the default of the software.
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
    /// The tag's number; a new one where it was not seen yet.
    pub(crate) fn number(&mut self, name: &str) -> u64 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.names.len() as u64;
        self.names.push(name.into());
        self.numbers.insert(name.into(), number);
        number
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.names.len() as u64
    }

    /// The tag with this number.
    pub(crate) fn name(&self, number: u64) -> &str {
        &self.names[number as usize]
    }
}

impl DataSet {
    /// The data set that a workload describes. With `as_original`, a record for which one tag is
    /// drawn has none, as in the original, whose language gives a number instead of a list there;
    /// records are chosen by their weights, and some have a lifetime of their own. Without it, each
    /// has as many tags as drawn, all are equally likely, and none has a lifetime of its own.
    pub fn drawn(workload: &AppCache, seed: u64) -> Self {
        let AppCache { keys, tags, tags_of_record, record_bytes, as_original, .. } = *workload;
        let source = Source::Drawn { keys, tags, tags_of_record, record_bytes };
        Self { seed, as_original, source }
    }

    /// Records from files. `seed` decides the values of later versions.
    pub(crate) fn read(records: Vec<ReadRecord>, tags: TagNames, seed: u64) -> Self {
        Self { seed, as_original: true, source: Source::Read { records, tags } }
    }

    /// How many records there are.
    pub fn keys(&self) -> u64 {
        match &self.source {
            Source::Drawn { keys, .. } => *keys,
            Source::Read { records, .. } => records.len() as u64,
        }
    }

    /// How many tags there are, whether or not a record carries them.
    pub fn tags(&self) -> u64 {
        match &self.source {
            Source::Drawn { tags, .. } => *tags,
            Source::Read { tags, .. } => tags.count(),
        }
    }

    /// Appends the record's key: for a drawn one, the md5 of its number from 0 as 32 lower-case
    /// hexadecimal characters.
    pub fn key_into(&self, out: &mut String, record: u64) {
        match &self.source {
            Source::Drawn { .. } => key_of_number(out, record),
            Source::Read { records, .. } => out.push_str(&records[record as usize].key),
        }
    }

    /// Appends the name of the tag with this number: for a drawn one `TAG_` and its number from 1,
    /// padded with zeros to the width of the last.
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

    /// Length of the record's value in every version.
    pub fn bytes(&self, record: u64) -> usize {
        match &self.source {
            Source::Drawn { record_bytes, .. } => {
                self.between(record, Draw::Bytes, *record_bytes) as usize
            }
            Source::Read { records, .. } => records[record as usize].data.len(),
        }
    }

    /// Replaces `out` by the numbers, from 0, of the record's tags.
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

    /// The record's own lifetime in seconds; `None` for the default of the software.
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

    /// Replaces `out` by the record's value in a version; 0 is the one that it is filled with.
    pub fn value_into(&self, out: &mut Vec<u8>, record: u64, version: u64) {
        match self.read_value(record).filter(|_| version == 0) {
            Some(data) => {
                out.clear();
                out.extend_from_slice(data);
            }
            None => value_of_version(out, self.seed, record, version, self.bytes(record)),
        }
    }

    /// Version 0 of a record that was read from a file, which is no function of its number.
    pub(crate) fn read_value(&self, record: u64) -> Option<&[u8]> {
        match &self.source {
            Source::Drawn { .. } => None,
            Source::Read { records, .. } => Some(records[record as usize].data.as_bytes()),
        }
    }

    /// The seed of the values.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// A record by its weight, from a scattered number; uniformly where the data set is not as the
    /// original's. There must be a record.
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

    /// How often a record is used, 1 to 100, in relation to others.
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

    /// A uniform number of the range, both ends included.
    fn between(&self, record: u64, draw: Draw, (least, most): (u64, u64)) -> u64 {
        least + pick(self.draw(record, draw), most.saturating_sub(least) + 1)
    }
}

/// Appends the md5 of a decimal number in hexadecimal.
fn key_of_number(out: &mut String, number: u64) {
    let digest = Md5::digest(number.to_string().as_bytes());
    hex_into(out, &digest);
}

/// Appends lower-case hexadecimal digits.
pub(crate) fn hex_into(out: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

/// `count` different numbers below `below`, ascending, every such set equally likely (Floyd's
/// method: Bentley, Floyd: A Sample of Brilliance, CACM 30, 1987).
fn distinct_into(out: &mut Vec<u64>, scattered: u64, count: u64, below: u64) {
    let mut state = scattered;
    for last in below - count..below {
        state = mix_in(state, last);
        let drawn = pick(state, last + 1);
        match out.binary_search(&drawn) {
            Err(place) => out.insert(place, drawn),
            // All numbers so far are smaller than `last`.
            Ok(_) => out.push(last),
        }
    }
}

#[cfg(test)]
#[path = "data_set_tests.rs"]
mod tests;

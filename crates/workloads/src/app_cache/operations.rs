//! The operations of each client of an application cache.
//!
//! The original benchmark draws a list for each client in advance: with a probability of one in
//! `clean_chance` + 1 a clean of a uniformly chosen tag, else with one in `write_chance` + 1 a
//! write of a record chosen by volatility, else a read of one chosen by popularity. Here each
//! operation is a pure function of (seed, client, n), or read from such a list.

use std::collections::BTreeMap;

use super::data_set::{Choice, DataSet};
use crate::values::{mix, mix_in, pick};

/// Separates these random numbers from those of other draws.
const LISTS: u64 = 0x6c69_7374;

/// One operation, with the number of its record or tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Loads a record.
    Read(u64),
    /// Saves a record with its own length and tags.
    Write(u64),
    /// Removes all records that carry a tag.
    Clean(u64),
}

/// The operations of all clients.
#[derive(Clone, Debug)]
pub enum Lists {
    /// Drawn as in the original.
    Drawn {
        /// Seed of all draws.
        seed: u64,
        /// One in `write_chance` + 1 operations is a write, unless it is a clean.
        write_chance: u64,
        /// One in `clean_chance` + 1 operations is a clean.
        clean_chance: u64,
    },
    /// Read from files, by client.
    Read(Vec<Vec<Operation>>),
}

impl Lists {
    /// Operation `n` of a client, from 0. Lists repeat after their end. `None` for a client without
    /// a list or with an empty one.
    pub fn operation(&self, data: &DataSet, client: u32, n: u64) -> Option<Operation> {
        match self {
            Self::Drawn { seed, write_chance, clean_chance } => {
                let state = mix(&[*seed, LISTS, u64::from(client), n]);
                Some(draw(data, state, *write_chance, *clean_chance))
            }
            Self::Read(lists) => {
                let list = lists.get(client as usize).filter(|list| !list.is_empty())?;
                Some(list[(n % list.len() as u64) as usize])
            }
        }
    }
}

fn draw(data: &DataSet, state: u64, write_chance: u64, clean_chance: u64) -> Operation {
    let one_of = |part, chance: u64| pick(mix_in(state, part), chance.saturating_add(1)) == 0;
    let chosen = mix_in(state, 3);
    if one_of(1, clean_chance) {
        Operation::Clean(pick(chosen, data.tags()))
    } else if one_of(2, write_chance) {
        Operation::Write(data.choose(chosen, Choice::Volatility))
    } else {
        Operation::Read(data.choose(chosen, Choice::Popularity))
    }
}

/// Whether an operation of a mix cleans.
pub(super) fn cleans(mix: &BTreeMap<String, f64>) -> bool {
    ["clean", "purchase"].iter().any(|name| mix.contains_key(*name))
}

#[cfg(test)]
#[path = "operations_tests.rs"]
mod tests;

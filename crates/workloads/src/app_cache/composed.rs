//! Operations of an application cache that consist of several calls.

use model::AppCache;

use super::data_set::{Choice, DataSet};
use super::ledger::Ledger;
use super::operations::Operation;
use crate::values::{mix_in, pick};

/// Kinds of calls.
pub(super) const CALLS: [&str; 3] = ["read", "write", "clean"];
pub(super) const READ: usize = 0;
pub(super) const WRITE: usize = 1;
pub(super) const CLEAN: usize = 2;
/// Operations of a mix: first the kinds of calls, then those of several calls.
pub(super) const OPERATIONS: [&str; 5] = ["read", "write", "clean", "page", "purchase"];
const PAGE: usize = 3;
const PURCHASE: usize = 4;

/// An operation of one or several calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Composed {
    /// A single call.
    One(Operation),
    /// One page view: loads of records chosen by popularity, then saves of records chosen by
    /// volatility, all selected by a number.
    Page(u64),
    /// A clean of a tag, then a save of every record that carries it.
    Purchase(u64),
}

impl Composed {
    /// One of [`OPERATIONS`] on records or a tag that a scattered number selects.
    pub(super) fn drawn(operation: usize, chosen: u64, data: &DataSet) -> Self {
        match operation {
            WRITE => Self::One(Operation::Write(data.choose(chosen, Choice::Volatility))),
            CLEAN => Self::One(Operation::Clean(pick(chosen, data.tags()))),
            PURCHASE => Self::Purchase(pick(chosen, data.tags())),
            PAGE => Self::Page(chosen),
            _ => Self::One(Operation::Read(data.choose(chosen, Choice::Popularity))),
        }
    }

    /// Number of calls.
    pub(super) fn calls(self, workload: &AppCache, ledger: &Ledger) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Page(_) => (workload.page_reads + workload.page_writes) as usize,
            Self::Purchase(tag) => 1 + ledger.carriers(tag).len(),
        }
    }

    /// What a call does.
    pub(super) fn call(self, call: usize, workload: &AppCache, ledger: &Ledger) -> Operation {
        let data = ledger.data();
        match self {
            Self::One(operation) => operation,
            Self::Page(draw) => {
                let chosen = mix_in(draw, call as u64 + 1);
                if (call as u64) < workload.page_reads {
                    Operation::Read(data.choose(chosen, Choice::Popularity))
                } else {
                    Operation::Write(data.choose(chosen, Choice::Volatility))
                }
            }
            Self::Purchase(tag) => match call.checked_sub(1) {
                None => Operation::Clean(tag),
                Some(next) => Operation::Write(u64::from(ledger.carriers(tag)[next])),
            },
        }
    }
}

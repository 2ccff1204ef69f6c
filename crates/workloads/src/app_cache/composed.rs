//! Operations of an application cache that consist of several calls.

use model::AppCache;

use super::data_set::Choice;
use super::ledger::Ledger;
use super::operations::Operation;
use crate::values::mix_in;

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

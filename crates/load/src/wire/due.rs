//! What was due in each interval of an open load, and how much of it came too late: what a search
//! for the highest rate within limits decides by.
//!
//! Requests count where they were due, so that an interval holds what was planned for it, however
//! late it was answered; those that failed are beyond every limit.

use model::{Beyond, Due};

use super::recorder::{INTERVAL_NS, Times};

/// Counts of a thread, or merged of all.
#[derive(Clone, Debug, Default)]
pub(crate) struct DueCounts {
    /// Ascending or not, as asked for.
    limits_ns: Vec<u64>,
    due_per_interval: Vec<u64>,
    /// By limit.
    over_per_interval: Vec<Vec<u64>>,
    late: u64,
}

impl DueCounts {
    /// Nothing was due yet.
    pub(crate) fn new(limits_ns: &[u64]) -> Self {
        let over_per_interval = vec![Vec::new(); limits_ns.len()];
        Self { limits_ns: limits_ns.to_vec(), over_per_interval, ..Self::default() }
    }

    /// Counts requests that were answered at a time, or that failed (`None`); the measurement began
    /// at `from_ns`.
    pub(crate) fn count(
        &mut self,
        intended_ns: u64,
        done_ns: Option<u64>,
        (requests, from_ns): (u64, u64),
    ) {
        let interval = (intended_ns.saturating_sub(from_ns) / INTERVAL_NS) as usize;
        add(&mut self.due_per_interval, interval, requests);
        for (limit_ns, over) in self.limits_ns.iter().zip(&mut self.over_per_interval) {
            if done_ns.is_none_or(|done| done.saturating_sub(intended_ns) > *limit_ns) {
                add(over, interval, requests);
            }
        }
    }

    /// A request was sent so late that this alone is half of a limit, although a client was free.
    pub(crate) fn was_late(&mut self, times: &Times) {
        let late_ns = times.sent_ns.saturating_sub(times.intended_ns);
        let strictest_ns = self.limits_ns.iter().min().copied().unwrap_or(u64::MAX);
        self.late += u64::from(late_ns > strictest_ns / 2);
    }

    /// Adds all of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        merge(&mut self.due_per_interval, &other.due_per_interval);
        for (own, theirs) in self.over_per_interval.iter_mut().zip(&other.over_per_interval) {
            merge(own, theirs);
        }
        self.late += other.late;
    }

    /// Forgets everything and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.due_per_interval.fill(0);
        self.over_per_interval.iter_mut().for_each(|over| over.fill(0));
        self.late = 0;
    }

    /// As a record keeps it.
    pub(crate) fn to_due(&self) -> Due {
        let beyond = self.limits_ns.iter().zip(&self.over_per_interval).map(|(limit, over)| {
            let mut over_per_interval = over.clone();
            over_per_interval.resize(self.due_per_interval.len(), 0);
            Beyond { limit_ns: *limit, over_per_interval }
        });
        Due {
            due_per_interval: self.due_per_interval.clone(),
            beyond: beyond.collect(),
            late: self.late,
        }
    }
}

fn add(counts: &mut Vec<u64>, interval: usize, requests: u64) {
    if counts.len() <= interval {
        counts.resize(interval + 1, 0);
    }
    counts[interval] += requests;
}

fn merge(own: &mut Vec<u64>, theirs: &[u64]) {
    if own.len() < theirs.len() {
        own.resize(theirs.len(), 0);
    }
    own.iter_mut().zip(theirs).for_each(|(own, theirs)| *own += theirs);
}

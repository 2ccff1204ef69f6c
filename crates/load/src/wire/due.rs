//! What was due in each interval of an open load, and how much of it came too late: what a search
//! for the highest rate within limits decides by.
//!
//! Requests count where they were due, so that an interval holds what was planned for it, however
//! late it was answered; those that failed are beyond every limit.

use model::{Beyond, Due};

use super::row::{INTERVAL_NS, Times};

/// Requests by the interval in which they were due.
#[derive(Clone, Debug, Default)]
struct ByInterval {
    due: Vec<u64>,
    /// Those beyond each limit.
    over: Vec<Vec<u64>>,
}

impl ByInterval {
    fn new(limits: usize) -> Self {
        Self { due: Vec::new(), over: vec![Vec::new(); limits] }
    }

    /// Counts requests that took so long, or failed (`None`).
    fn count(&mut self, interval: usize, requests: u64, (ns, limits_ns): (Option<u64>, &[u64])) {
        add(&mut self.due, interval, requests);
        for (limit_ns, over) in limits_ns.iter().zip(&mut self.over) {
            if ns.is_none_or(|ns| ns > *limit_ns) {
                add(over, interval, requests);
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        merge(&mut self.due, &other.due);
        self.over.iter_mut().zip(&other.over).for_each(|(own, theirs)| merge(own, theirs));
    }

    fn clear(&mut self) {
        self.due.fill(0);
        self.over.iter_mut().for_each(|over| over.fill(0));
    }

    /// The same with so many intervals.
    fn resized(&self, intervals: usize) -> Self {
        let mut resized = self.clone();
        let Self { due, over } = &mut resized;
        over.iter_mut().chain([due]).for_each(|counts| counts.resize(intervals, 0));
        resized
    }
}

/// Counts of a thread, or merged of all.
#[derive(Clone, Debug, Default)]
pub(crate) struct DueCounts {
    /// Ascending or not, as asked for.
    limits_ns: Vec<u64>,
    all: ByInterval,
    late: u64,
}

impl DueCounts {
    /// Nothing was due yet.
    pub(crate) fn new(limits_ns: &[u64]) -> Self {
        Self { limits_ns: limits_ns.to_vec(), all: ByInterval::new(limits_ns.len()), late: 0 }
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
        let ns = done_ns.map(|done_ns| done_ns.saturating_sub(intended_ns));
        self.all.count(interval, requests, (ns, &self.limits_ns));
    }

    /// A request was sent so late that this alone is half of a limit, although a client was free.
    pub(crate) fn was_late(&mut self, times: &Times) {
        let late_ns = times.sent_ns.saturating_sub(times.intended_ns);
        let strictest_ns = self.limits_ns.iter().min().copied().unwrap_or(u64::MAX);
        self.late += u64::from(late_ns > strictest_ns / 2);
    }

    /// Adds all of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.all.merge(&other.all);
        self.late += other.late;
    }

    /// Forgets everything and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.all.clear();
        self.late = 0;
    }

    /// As a record keeps it.
    pub(crate) fn to_due(&self) -> Due {
        let intervals = self.all.due.len();
        let all = self.all.resized(intervals);
        let beyond = self.limits_ns.iter().zip(all.over);
        let beyond = beyond
            .map(|(limit_ns, over_per_interval)| Beyond { limit_ns: *limit_ns, over_per_interval });
        Due { beyond: beyond.collect(), due_per_interval: all.due, late: self.late }
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

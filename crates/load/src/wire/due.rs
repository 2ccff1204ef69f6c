//! What was due in each interval of an open load, and how much of it came too late: what a search
//! for the highest rate within limits decides by.
//!
//! Requests count where they were due, so that an interval holds what was planned for it, however
//! late it was answered; those that failed are beyond every limit.

use model::{Beyond, Disturbed, Due};
use stats::Histogram;

use super::preempted::Lost;
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
    /// The part of all these that was delayed because others took a CPU.
    disturbed_per_interval: Vec<u64>,
    disturbed_over_per_interval: Vec<Vec<u64>>,
    disturbed_response: Histogram,
    lost: Lost,
}

impl DueCounts {
    /// Nothing was due yet.
    pub(crate) fn new(limits_ns: &[u64]) -> Self {
        let over_per_interval = vec![Vec::new(); limits_ns.len()];
        Self {
            limits_ns: limits_ns.to_vec(),
            disturbed_over_per_interval: over_per_interval.clone(),
            over_per_interval,
            ..Self::default()
        }
    }

    /// Counts requests that were answered at a time, or that failed (`None`); the measurement began
    /// at `from_ns`. Those `apart` were delayed because others took a CPU.
    pub(crate) fn count(
        &mut self,
        intended_ns: u64,
        done_ns: Option<u64>,
        (requests, from_ns): (u64, u64),
        apart: bool,
    ) {
        let interval = (intended_ns.saturating_sub(from_ns) / INTERVAL_NS) as usize;
        let count = |due: &mut Vec<u64>, beyond: &mut [Vec<u64>]| {
            add(due, interval, requests);
            for (limit_ns, over) in self.limits_ns.iter().zip(beyond) {
                if done_ns.is_none_or(|done| done.saturating_sub(intended_ns) > *limit_ns) {
                    add(over, interval, requests);
                }
            }
        };
        count(&mut self.due_per_interval, &mut self.over_per_interval);
        if apart {
            count(&mut self.disturbed_per_interval, &mut self.disturbed_over_per_interval);
            if let Some(done_ns) = done_ns {
                let response_ns = done_ns.saturating_sub(intended_ns);
                self.disturbed_response.record_many(response_ns, requests);
            }
        }
    }

    /// Others took a CPU.
    pub(crate) fn lost(&mut self, lost: Lost) {
        self.lost = self.lost.plus(lost);
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
        merge(&mut self.disturbed_per_interval, &other.disturbed_per_interval);
        let theirs = &other.disturbed_over_per_interval;
        for (own, theirs) in self.disturbed_over_per_interval.iter_mut().zip(theirs) {
            merge(own, theirs);
        }
        self.disturbed_response.merge(&other.disturbed_response);
        self.lost = self.lost.plus(other.lost);
    }

    /// Forgets everything and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.due_per_interval.fill(0);
        self.over_per_interval.iter_mut().for_each(|over| over.fill(0));
        self.late = 0;
        self.disturbed_per_interval.fill(0);
        self.disturbed_over_per_interval.iter_mut().for_each(|over| over.fill(0));
        self.disturbed_response.clear();
        self.lost = Lost::default();
    }

    /// As a record keeps it.
    pub(crate) fn to_due(&self) -> Due {
        let intervals = self.due_per_interval.len();
        let as_long = |counts: &Vec<u64>| {
            let mut counts = counts.clone();
            counts.resize(intervals, 0);
            counts
        };
        let beyond = self.limits_ns.iter().zip(&self.over_per_interval);
        let beyond = beyond.map(|(limit_ns, over)| Beyond {
            limit_ns: *limit_ns,
            over_per_interval: as_long(over),
        });
        let disturbed = (self.lost.times > 0).then(|| Disturbed {
            times: self.lost.times,
            generator_ns: self.lost.own_ns,
            server_ns: self.lost.server_ns,
            due_per_interval: as_long(&self.disturbed_per_interval),
            over_per_interval: self.disturbed_over_per_interval.iter().map(as_long).collect(),
            response: self.disturbed_response.clone(),
        });
        Due {
            due_per_interval: self.due_per_interval.clone(),
            beyond: beyond.collect(),
            late: self.late,
            disturbed,
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

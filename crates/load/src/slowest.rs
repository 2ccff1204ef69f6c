//! The longest time in each short interval of a phase: from it follows in how many separate
//! episodes a store was slow, which no histogram tells.

use crate::intervals::merge_by;

/// Lengths that an interval may have, nanoseconds.
const SHORTEST_NS: u64 = 5_000_000;
const LONGEST_NS: u64 = 100_000_000;

/// The longest time of what was due in each interval.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slowest {
    interval_ns: u64,
    /// 0 where nothing was due, the largest number where something failed.
    longest_ns: Vec<u64>,
    /// The interval of the last request, and where it begins.
    at: usize,
    begins_ns: u64,
}

impl Slowest {
    pub(crate) fn new(interval_ns: u64) -> Self {
        Self { interval_ns, longest_ns: vec![0], ..Self::default() }
    }

    pub(crate) fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    /// Records a time of what was due so long after the measurement began.
    #[inline]
    pub(crate) fn record(&mut self, due_ns: u64, ns: u64) {
        if due_ns.wrapping_sub(self.begins_ns) >= self.interval_ns {
            self.turn_to(due_ns);
        }
        if let Some(longest_ns) = self.longest_ns.get_mut(self.at)
            && ns > *longest_ns
        {
            *longest_ns = ns;
        }
    }

    /// Records something that failed.
    pub(crate) fn fail(&mut self, due_ns: u64) {
        self.record(due_ns, u64::MAX);
    }

    fn turn_to(&mut self, due_ns: u64) {
        if self.interval_ns == 0 {
            return;
        }
        self.at = (due_ns / self.interval_ns) as usize;
        self.begins_ns = self.at as u64 * self.interval_ns;
        if self.longest_ns.len() <= self.at {
            self.longest_ns.resize(self.at + 1, 0);
        }
    }

    /// Adds what another one recorded; intervals are as long in both.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.interval_ns = self.interval_ns.max(other.interval_ns);
        merge_by(&mut self.longest_ns, &other.longest_ns, u64::max);
    }

    /// Forgets everything and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.longest_ns.fill(0);
    }

    /// As a record keeps it; `response` where response times are kept apart.
    pub(crate) fn to_record(&self, response: Option<&Self>) -> model::Slowest {
        let of = |slowest: &Self| slowest.longest_ns.clone();
        model::Slowest {
            interval_ns: self.interval_ns,
            service: of(self),
            response: response.map(of).unwrap_or_default(),
        }
    }
}

/// How long intervals are in a measurement of that length: a hundredth of it, within limits.
pub(crate) fn interval_ns(length_ns: Option<u64>) -> u64 {
    length_ns.map_or(LONGEST_NS, |ns| (ns / 100).clamp(SHORTEST_NS, LONGEST_NS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_interval_keeps_its_longest() {
        let mut slowest = Slowest::new(10);
        for (due_ns, ns) in [(0, 3), (9, 5), (9, 4), (31, 7), (12, 2), (33, 6)] {
            slowest.record(due_ns, ns);
        }
        assert_eq!(slowest.longest_ns, [5, 2, 0, 7]);
        let mut other = Slowest::new(10);
        other.record(1, 9);
        other.fail(45);
        slowest.merge(&other);
        assert_eq!(slowest.longest_ns, [9, 2, 0, 7, u64::MAX]);
        let mut empty = Slowest::default();
        empty.merge(&slowest);
        assert_eq!(empty.to_record(None).service, slowest.longest_ns);
        slowest.clear();
        slowest.record(20, 1);
        assert_eq!(slowest.longest_ns, [0, 0, 1, 0, 0]);
    }
}

//! Latencies over time: intervals of a second, each with its own distributions.
//!
//! Threads hand over their records five times a second, so a request may count in the interval
//! after the one in which it ended.

use load::wire::{ProgressSnapshot, WireRecorder};
use model::Interval;
use stats::Histogram;

use crate::wall::unix_ms;

/// Shortest interval, except for the last one.
const LENGTH_NS: u64 = 1_000_000_000;

/// The intervals of a phase so far.
pub(crate) struct Intervals<'a> {
    phase: &'a str,
    /// Operation names in the order of the recorder's rows.
    names: &'a [&'a str],
    pending: WireRecorder,
    /// Start of the pending interval, from the start of the measurement.
    from_ns: u64,
    whole: Vec<Interval>,
}

impl<'a> Intervals<'a> {
    /// Has no intervals yet.
    pub(crate) fn new(phase: &'a str, names: &'a [&'a str]) -> Self {
        let pending = WireRecorder::default();
        Self { phase, names, pending, from_ns: 0, whole: Vec::new() }
    }

    /// Adds what was recorded since the last snapshot.
    pub(crate) fn take(&mut self, moment: &ProgressSnapshot<'_>) {
        self.pending.merge(moment.latest);
        let length_ns = moment.at_ns - self.from_ns;
        if length_ns < LENGTH_NS && !moment.last {
            return;
        }
        let pending = std::mem::take(&mut self.pending);
        self.from_ns = moment.at_ns;
        let begun_unix_ms = unix_ms().saturating_sub(length_ns / 1_000_000);
        for (row, operation) in pending.rows().iter().zip(self.names) {
            let response = row.lag().is_some().then(|| ("response", row.response()));
            let times = [Some(("service", row.service())), response];
            let recorded = |(_, times): &(&str, &Histogram)| !times.is_empty();
            self.whole.extend(times.into_iter().flatten().filter(recorded).map(|(time, times)| {
                Interval {
                    phase: self.phase.into(),
                    operation: (*operation).into(),
                    time,
                    begun_unix_ms,
                    length_ns,
                    max_ns: times.max_ns(),
                    encoded: times.encode(),
                }
            }));
        }
    }

    /// All intervals.
    pub(crate) fn into_vec(self) -> Vec<Interval> {
        self.whole
    }
}

//! Memory, swap and disk over time within a phase, from samples, for the chart of its rate.

use model::{SAMPLE_NS, Sample};

use crate::series::InBlock;
use crate::view::ResourceCharts;

/// Largest number of intervals of a phase: more would not be seen.
const INTERVALS_MAX: u64 = 200;

/// The series of all blocks, in intervals that are as long as samples of the longest phase need;
/// `None` unless the memory of its target is limited.
pub(crate) fn over_time(blocks: &[(&InBlock<'_>, &[Sample])]) -> Option<ResourceCharts> {
    let is_limited =
        |samples: &&[Sample]| samples.iter().any(|sample| sample.group_bytes.is_some());
    if !blocks.iter().map(|(_, samples)| *samples).any(|samples| is_limited(&samples)) {
        return None;
    }
    let longest_ns = blocks.iter().map(|(block, _)| block.point.length_ns).max()?;
    let interval_ns = longest_ns.div_ceil(INTERVALS_MAX).next_multiple_of(SAMPLE_NS);
    let each = |of: &dyn Fn(&Course<'_>) -> Vec<Option<f64>>| {
        let course = |(block, samples): &(&InBlock<'_>, &[Sample])| {
            of(&Course {
                samples,
                interval_ns,
                begun_ns: block.point.begun_ns,
                length_ns: block.point.length_ns,
            })
        };
        blocks.iter().map(course).collect::<Vec<_>>()
    };
    Some(ResourceCharts {
        interval_s: interval_ns as f64 / 1e9,
        memory_bytes: each(&|c| c.levels(|s| s.group_bytes)),
        swapped_bytes: each(&|c| c.levels(|s| Some(s.server.as_ref()?.swapped_bytes))),
        read_bytes_per_s: each(&|c| c.rates(|s| Some(s.device?.read_bytes))),
        written_bytes_per_s: each(&|c| c.rates(|s| Some(s.device?.written_bytes))),
    })
}

/// A block's samples in chronological order, and the span of its phase.
struct Course<'a> {
    samples: &'a [Sample],
    interval_ns: u64,
    begun_ns: u64,
    length_ns: u64,
}

impl Course<'_> {
    /// The ends of all whole intervals, nanoseconds since the start of the trial.
    fn ends_ns(&self) -> impl Iterator<Item = u64> {
        let whole = self.length_ns / self.interval_ns.max(1);
        let (begun_ns, interval_ns) = (self.begun_ns, self.interval_ns);
        (1..=whole).map(move |number| begun_ns + number * interval_ns)
    }

    /// The last reading of a level at the end of each interval; `None` if there is none within it.
    fn levels(&self, read: fn(&Sample) -> Option<u64>) -> Vec<Option<f64>> {
        let at_end = |end_ns: u64| {
            let to = self.samples.partition_point(|sample| sample.at_ns <= end_ns);
            let from_ns = end_ns.saturating_sub(self.interval_ns.max(2 * SAMPLE_NS));
            let latest = self.samples[..to].iter().rev();
            let mut own = latest.take_while(|sample| sample.at_ns > from_ns);
            Some(own.find_map(read)? as f64)
        };
        self.ends_ns().map(at_end).collect()
    }

    /// Growth of a counter per second in each interval.
    fn rates(&self, read: fn(&Sample) -> Option<u64>) -> Vec<Option<f64>> {
        let per_s = |end_ns: u64| {
            let grown =
                self.counter(end_ns, read)? - self.counter(end_ns - self.interval_ns, read)?;
            Some(grown.max(0.0) / (self.interval_ns as f64 / 1e9))
        };
        self.ends_ns().map(per_s).collect()
    }

    /// A counter at a time, on the line between the samples before and after it.
    fn counter(&self, at_ns: u64, read: fn(&Sample) -> Option<u64>) -> Option<f64> {
        let reading = |sample: &Sample| Some((sample.at_ns as f64, read(sample)? as f64));
        let next = self.samples.partition_point(|sample| sample.at_ns < at_ns);
        let after = self.samples[next..].iter().find_map(reading)?;
        let before = self.samples[..next].iter().rev().find_map(reading).unwrap_or(after);
        let span = after.0 - before.0;
        let share = if span > 0.0 { (at_ns as f64 - before.0) / span } else { 0.0 };
        Some(before.1 + (after.1 - before.1) * share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::DeviceUse;

    #[test]
    fn levels_and_growth_are_read_at_the_ends_of_intervals() {
        let sample = |at_ms: u64, bytes: u64| Sample {
            at_ns: at_ms * 1_000_000,
            group_bytes: Some(bytes),
            device: Some(DeviceUse { read_bytes: bytes, ..DeviceUse::default() }),
            ..Sample::default()
        };
        let samples = [sample(950, 0), sample(1_050, 100), sample(1_150, 300), sample(1_250, 300)];
        let [interval_ns, begun_ns, length_ns] = [100_000_000, 1_000_000_000, 450_000_000];
        let course = Course { samples: &samples, interval_ns, begun_ns, length_ns };
        let levels = course.levels(|sample| sample.group_bytes);
        assert_eq!(levels, [Some(100.0), Some(300.0), Some(300.0), Some(300.0)]);
        // From 50 at 1.0 s to 200 at 1.1 s, and to 300 at 1.2 s.
        let rates = course.rates(|sample| Some(sample.device?.read_bytes));
        assert_eq!(rates, [Some(1_500.0), Some(1_000.0), None, None]);
    }
}

//! CPU use of each of several servers around a fault.

use model::{Fact, Point, Sample, TrialEvent};
use std::collections::BTreeSet;

/// Length of the windows over which CPU use is averaged, nanoseconds.
const WINDOW_NS: u64 = 1_000_000_000;
/// How long before the fault the use before it is taken at most, nanoseconds.
const BEFORE_NS: u64 = 3_000_000_000;

/// CPU use of the busiest server in the busiest second before and after the first fault, as a share
/// of one CPU. Time before the measurement of the phase, in which another load ran, does not count.
/// Empty without a fault, and for a single server.
pub(crate) fn facts(points: &[Point], samples: &[Sample], events: &[TrialEvent]) -> Vec<Fact> {
    let Some(fault) = events.iter().filter(|event| event.kind.is_fault()).min_by_key(|e| e.at_ns)
    else {
        return Vec::new();
    };
    let begun_ns = points.iter().map(|p| p.begun_ns).filter(|ns| *ns <= fault.at_ns).max();
    let from_ns = fault.at_ns.saturating_sub(BEFORE_NS).max(begun_ns.unwrap_or(0));
    let parts = [
        ("cpu_before_fault_share", (from_ns, fault.at_ns)),
        ("cpu_peak_share", (fault.at_ns, u64::MAX)),
    ];
    let fact = |(name, span): (&str, (u64, u64))| {
        let (name, source) = (name.into(), "servers".into());
        Some(Fact { name, value: busiest(samples, span)?, source })
    };
    parts.into_iter().filter_map(fact).collect()
}

/// The busiest second of a server in a span of time; `None` if it has no whole second.
fn busiest(samples: &[Sample], (from_ns, to_ns): (u64, u64)) -> Option<f64> {
    let span: Vec<&Sample> =
        samples.iter().filter(|s| (from_ns..=to_ns).contains(&s.at_ns)).collect();
    let ids: BTreeSet<u32> = span.iter().flat_map(|s| &s.servers).map(|s| s.id).collect();
    let of_server = |id: u32| {
        let cpu_ns = |sample: &Sample| sample.servers.iter().find(|s| s.id == id).map(|s| s.cpu_ns);
        let readings: Vec<(u64, u64)> =
            span.iter().filter_map(|sample| Some((sample.at_ns, cpu_ns(sample)?))).collect();
        let share = |(i, (at_ns, cpu_ns)): (usize, &(u64, u64))| {
            let (later_ns, later_cpu_ns) =
                readings[i..].iter().find(|(later_ns, _)| *later_ns >= at_ns + WINDOW_NS)?;
            Some(later_cpu_ns.saturating_sub(*cpu_ns) as f64 / (later_ns - at_ns) as f64)
        };
        readings.iter().enumerate().filter_map(share).max_by(f64::total_cmp)
    };
    ids.into_iter().filter_map(of_server).max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{EventKind, ThreadCpu};

    const MS: u64 = 1_000_000;

    #[test]
    fn the_busiest_server_counts_before_and_after_the_fault() {
        let sample = |i: u64| {
            let server = |id, cpu_ns| ThreadCpu { id, name: String::new(), cpu_ns };
            // The first server uses half a CPU and dies at 2 s, then the second one uses 0.9.
            let first = (i < 20).then(|| server(1, (i * 50 + i.min(5) * 50) * MS));
            let second = server(2, i.saturating_sub(20) * 90 * MS);
            let servers = first.into_iter().chain([second]).collect();
            Sample { at_ns: i * 100 * MS, servers, ..Sample::default() }
        };
        let samples: Vec<Sample> = (0..60).map(sample).collect();
        let event = |kind| TrialEvent { at_ns: 2_000 * MS, kind, subject: String::new() };
        let facts = |kind| {
            let point = |begun_ns| Point { begun_ns, ..Point::default() };
            // In the phase before, it used all of a CPU.
            let points = [0, 500 * MS, 3_000 * MS].map(point);
            let found = super::facts(&points, &samples, &[event(kind)]);
            found.into_iter().map(|f| (f.name, (f.value * 100.0).round())).collect::<Vec<_>>()
        };
        let (before, peak) = ("cpu_before_fault_share".to_string(), "cpu_peak_share".to_string());
        assert_eq!(facts(EventKind::Killed), [(before, 50.0), (peak, 90.0)]);
        assert!(facts(EventKind::Promoted).is_empty());
    }

    #[test]
    fn a_single_server_has_no_such_facts() {
        let samples = [0, 1, 2, 3].map(|s| Sample { at_ns: s * WINDOW_NS, ..Sample::default() });
        let (at_ns, kind, subject) = (WINDOW_NS, EventKind::Killed, String::new());
        assert!(facts(&[], &samples, &[TrialEvent { at_ns, kind, subject }]).is_empty());
    }
}

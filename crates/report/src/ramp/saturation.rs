//! Reduces samples for drawing: the lowest and the highest value of each quantity in each of a few
//! hundred time spans, so that no peak is lost. The record has all samples.

use model::{ProcessUse, Sample, StoreCounters};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::view::{Saturation, SaturationSeries};

/// Time spans per series, each with two values; more would exceed a chart's pixels.
const SPANS: usize = 300;

/// Maximum number of drawn server threads: those with the most CPU time.
const THREADS_MAX: usize = 6;

/// Minimum peak CPU usage of a drawn thread, CPUs.
const THREAD_CPUS_MIN: f64 = 0.02;

/// Significant digits of drawn values.
const DIGITS: i32 = 4;

/// Time in seconds since the start of the trial, and value.
type Points = Vec<(f64, f64)>;

/// All series of a trial; `None` for fewer than two samples.
pub(crate) fn saturation(samples: &[Sample]) -> Option<Saturation> {
    let (first, last) = (samples.first()?, samples.last()?);
    let length_s = last.at_ns as f64 / 1e9;
    if samples.len() < 2 || last.at_ns <= first.at_ns {
        return None;
    }
    // At least two readings per span, since they jitter and no span should be empty.
    let count = SPANS.min(samples.len() / 2);
    let span_s = length_s / count as f64;
    let all = [cpus(samples), memory(samples), traffic(samples), counters(samples)].concat();
    let drawn = |(panel, name, points): (&str, String, Points)| {
        let (low, high) = ends(&points, span_s, count);
        let high = if high == low { Vec::new() } else { high };
        SaturationSeries { panel: panel.into(), name, low, high }
    };
    let shown = all.into_iter().filter(|(_, _, points)| !points.is_empty());
    Some(Saturation { span_s, series: shown.map(drawn).collect() })
}

/// Activity of a server's threads in a time span, as shares of one CPU's time.
pub(crate) struct Threads {
    /// CPU usage of the busiest thread.
    pub(crate) busiest: f64,
    /// Time that all threads waited for a CPU.
    pub(crate) waited: f64,
}

/// Thread activity from the samples of a trial; `None` without two samples in the span.
pub(crate) fn threads_within(samples: &[Sample], span_ns: Range<u64>) -> Option<Threads> {
    let within = samples.iter().filter(|s| span_ns.contains(&s.at_ns));
    let readings = within.filter_map(|s| Some((s.at_ns, s.server.as_ref()?)));
    let mut readings = readings.filter(|(_, server)| !server.threads.is_empty());
    let ((from_ns, first), (to_ns, last)) = (readings.next()?, readings.next_back()?);
    let share =
        |before: u64, after: u64| after.saturating_sub(before) as f64 / (to_ns - from_ns) as f64;
    let by_id: BTreeMap<u32, u64> = first.threads.iter().map(|t| (t.id, t.cpu_ns)).collect();
    let used = last.threads.iter().filter_map(|t| Some(share(*by_id.get(&t.id)?, t.cpu_ns)));
    let waited = share(first.run_delay_ns, last.run_delay_ns);
    Some(Threads { busiest: used.reduce(f64::max)?, waited })
}

type Named = (&'static str, String, Points);

fn cpus(samples: &[Sample]) -> Vec<Named> {
    let server = |s: &Sample| Some(s.server.as_ref()?.cpu_ns as f64 / 1e9);
    let generator = |s: &Sample| Some(s.generator.cpu_ns as f64 / 1e9);
    let waited = |s: &Sample| Some(s.generator.run_delay_ns as f64 / 1e9);
    let mut found = vec![("cpu", "server".to_string(), rates(samples, server))];
    found.extend(threads(samples).into_iter().map(|(name, points)| ("cpu", name, points)));
    found.push(("cpu", "generator".into(), rates(samples, generator)));
    found.push(("waiting", "generator".into(), rates(samples, waited)));
    found
}

/// The server's busiest threads, if several are active.
fn threads(samples: &[Sample]) -> Vec<(String, Points)> {
    let of = |s: &Sample| -> Vec<(u32, String)> {
        let threads = s.server.iter().flat_map(|server| &server.threads);
        threads.map(|t| (t.id, t.name.clone())).collect()
    };
    let ids: BTreeSet<(u32, String)> = samples.iter().flat_map(of).collect();
    let mut found: Vec<(f64, u32, String, Points)> = Vec::new();
    for (id, name) in ids {
        let cpu = |s: &Sample| {
            let thread = s.server.as_ref()?.threads.iter().find(|t| t.id == id)?;
            Some(thread.cpu_ns as f64 / 1e9)
        };
        let points = rates(samples, cpu);
        let most = points.iter().map(|(_, cpus)| *cpus).fold(0.0, f64::max);
        if most >= THREAD_CPUS_MIN {
            found.push((most, id, name, points));
        }
    }
    if found.len() < 2 {
        return Vec::new();
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.truncate(THREADS_MAX);
    let label = |(_, id, name, points): (f64, u32, String, Points)| {
        (format!("server thread {name} {id}"), points)
    };
    found.into_iter().map(label).collect()
}

fn memory(samples: &[Sample]) -> Vec<Named> {
    let store = |read: fn(&StoreCounters) -> Option<u64>| {
        levels(samples, move |s| Some(read(s.store.as_ref()?)? as f64))
    };
    let server = |read: fn(&ProcessUse) -> u64| {
        levels(samples, move |s| Some(read(s.server.as_ref()?) as f64))
    };
    let swapped = server(|p| p.swapped_bytes);
    let ratio = levels(samples, |s| s.store.as_ref()?.fragmentation);
    vec![
        ("memory", "resident".into(), server(|p| p.resident_bytes)),
        ("memory", "used by the data".into(), store(|c| c.used_bytes)),
        ("memory", "limit".into(), store(|c| c.limit_bytes)),
        ("memory", "swapped out".into(), nonzero(swapped)),
        ("fragmentation", "resident by used".into(), ratio),
    ]
}

fn traffic(samples: &[Sample]) -> Vec<Named> {
    let wire = |read: fn(&model::NetworkUse) -> u64| {
        rates(samples, move |s| Some(read(s.network.as_ref()?) as f64))
    };
    let counter = |read: fn(&StoreCounters) -> Option<u64>| {
        rates(samples, move |s| Some(read(s.store.as_ref()?)? as f64))
    };
    vec![
        ("network", "received by the interface".into(), wire(|n| n.received_bytes)),
        ("network", "sent by the interface".into(), wire(|n| n.sent_bytes)),
        ("network", "received by the server".into(), counter(|c| c.received_bytes)),
        ("network", "sent by the server".into(), counter(|c| c.sent_bytes)),
        ("packets", "received".into(), wire(|n| n.received_packets)),
        ("packets", "sent".into(), wire(|n| n.sent_packets)),
    ]
}

fn counters(samples: &[Sample]) -> Vec<Named> {
    let counter = |read: fn(&StoreCounters) -> Option<u64>| {
        rates(samples, move |s| Some(read(s.store.as_ref()?)? as f64))
    };
    let switches = |p: &ProcessUse| (p.voluntary_switches + p.involuntary_switches) as f64;
    let connections = levels(samples, |s| Some(s.store.as_ref()?.connections? as f64));
    vec![
        ("keys", "expired".into(), nonzero(counter(|c| c.expired))),
        ("keys", "evicted".into(), nonzero(counter(|c| c.evicted))),
        ("keys", "reads that missed".into(), nonzero(counter(|c| c.misses))),
        ("connections", "open".into(), connections),
        ("connections", "refused per second".into(), nonzero(counter(|c| c.refused))),
        ("switches", "server".into(), rates(samples, |s| Some(switches(s.server.as_ref()?)))),
        ("switches", "generator".into(), rates(samples, |s| Some(switches(&s.generator)))),
    ]
}

/// The series, or an empty one if all values are 0.
fn nonzero(points: Points) -> Points {
    if points.iter().any(|(_, value)| *value > 0.0) { points } else { Points::new() }
}

fn levels(samples: &[Sample], read: impl Fn(&Sample) -> Option<f64>) -> Points {
    samples.iter().filter_map(|s| Some((s.at_ns as f64 / 1e9, read(s)?))).collect()
}

/// Rate of a counter between two readings, per second; unknown if it fell, since the server reset
/// it.
fn rates(samples: &[Sample], read: impl Fn(&Sample) -> Option<f64>) -> Points {
    let levels = levels(samples, read);
    let rate = |pair: &[(f64, f64)]| {
        let ((begin, before), (end, after)) = (pair[0], pair[1]);
        (end > begin && after >= before).then(|| (end, (after - before) / (end - begin)))
    };
    levels.windows(2).filter_map(rate).collect()
}

/// Lowest and highest value of each time span.
fn ends(points: &Points, span_s: f64, count: usize) -> (Vec<Option<f64>>, Vec<Option<f64>>) {
    let (mut low, mut high) = (vec![None; count], vec![None; count]);
    for (at, value) in points {
        let i = ((at / span_s) as usize).min(count - 1);
        let value = rounded(*value);
        low[i] = Some(low[i].map_or(value, |known: f64| known.min(value)));
        high[i] = Some(high[i].map_or(value, |known: f64| known.max(value)));
    }
    (low, high)
}

fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let step = 10_f64.powi(value.abs().log10().floor() as i32 + 1 - DIGITS);
    // Dividing by an integer keeps decimals short.
    if step >= 1.0 {
        (value / step).round() * step
    } else {
        (value / step).round() / (1.0 / step).round()
    }
}

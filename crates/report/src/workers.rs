//! What each worker of a fleet contributed, over all held points of a phase, and what the others
//! measured without it. Counts and histograms are added; no percentile is averaged.

use model::{Contributor, Counts, Point};
use stats::{Histogram, Time};
use std::collections::BTreeMap;

use crate::measurement::Measurement;
use crate::recorded::Recorded;
use crate::view::WorkerView;

/// A contribution with the index of its point.
type Contributed<'a> = (usize, &'a Contributor);

/// Sum over the points of a worker, or of several.
#[derive(Clone, Default)]
struct Sum {
    counts: Counts,
    response: Histogram,
    /// Operations per second, by point.
    rates_per_s: BTreeMap<usize, f64>,
}

impl Sum {
    /// Adds contributions to points of these lengths, nanoseconds.
    fn add<'a>(
        &mut self,
        contributions: impl Iterator<Item = Contributed<'a>>,
        lengths_ns: &[u64],
    ) {
        for (at, Contributor { point, .. }) in contributions {
            let Some(whole) = point.whole() else { continue };
            self.counts.merge(&whole.counts);
            self.response.merge(&whole.response);
            let share = point.length_ns as f64 / lengths_ns[at].max(1) as f64;
            *self.rates_per_s.entry(at).or_default() += whole.rate_per_s * share;
        }
    }

    /// Operations per second: the geometric mean over points, as of all results over blocks.
    fn rate_per_s(&self) -> f64 {
        let positive = self.rates_per_s.values().filter(|rate| **rate > 0.0);
        let logs: Vec<f64> = positive.map(|rate| rate.ln()).collect();
        if logs.is_empty() {
            return 0.0;
        }
        (logs.iter().sum::<f64>() / logs.len() as f64).exp()
    }

    fn p99(&self, timeout_ns: u64) -> Option<Time> {
        self.counts.times(&self.response, timeout_ns).quantile(0.99)
    }
}

/// Calls `each` with what all but one of the workers contributed, in their order, added to
/// `others`. Halves share sums, so that a thousand workers need ten thousand additions and not a
/// million.
fn without_each(
    workers: &[Vec<Contributed<'_>>],
    others: &Sum,
    lengths_ns: &[u64],
    each: &mut dyn FnMut(&Sum),
) {
    if workers.len() < 2 {
        if !workers.is_empty() {
            each(others);
        }
        return;
    }
    let (first, second) = workers.split_at(workers.len() / 2);
    for (half, rest) in [(first, second), (second, first)] {
        let mut others = others.clone();
        others.add(rest.iter().flatten().copied(), lengths_ns);
        without_each(half, &others, lengths_ns, each);
    }
}

/// The points of a measurement to which workers contributed: those that figures use.
fn held<'a>(measurement: &Measurement<'a>) -> Vec<&'a Point> {
    let decisive = measurement.decisive.iter().filter_map(|(_, groups)| groups.first());
    let has_workers = |point: &&&Point| !point.contributors.is_empty();
    decisive.flatten().filter(has_workers).copied().collect()
}

/// The workers of a measurement; empty without a fleet. Computed once, since several rules need
/// them.
pub(crate) fn of<'a>(measurement: &'a Measurement<'_>) -> &'a [WorkerView] {
    measurement.workers.get_or_init(|| views(measurement))
}

fn views(measurement: &Measurement<'_>) -> Vec<WorkerView> {
    let points = held(measurement);
    let Some(first) = points.first() else { return Vec::new() };
    let mut by_name: BTreeMap<&str, Vec<Contributed<'_>>> = BTreeMap::new();
    for (at, point) in points.iter().enumerate() {
        for one in &point.contributors {
            by_name.entry(&one.name).or_default().push((at, one));
        }
    }
    let names = first.contributors.iter();
    let workers: Vec<Vec<Contributed<'_>>> =
        names.filter_map(|one| by_name.remove(one.name.as_str())).collect();
    let lengths_ns: Vec<u64> = points.iter().map(|point| point.length_ns).collect();
    let is_alone = workers.len() < 2;
    let mut views =
        workers.iter().map(|own| view(measurement, own, &lengths_ns)).collect::<Vec<_>>();
    let (mut at, timeout_ns) = (0, measurement.recorded.header.plan.timeout_ns);
    without_each(&workers, &Sum::default(), &lengths_ns, &mut |others| {
        views[at].rate_per_s_without = (!is_alone).then(|| others.rate_per_s());
        views[at].response_ns_p99_without = others.p99(timeout_ns).filter(|_| !is_alone);
        at += 1;
    });
    views
}

/// A worker by what it contributed to points of these lengths; what the others did is added later.
fn view(
    measurement: &Measurement<'_>,
    contributed: &[Contributed<'_>],
    lengths_ns: &[u64],
) -> WorkerView {
    let own: Vec<&Contributor> = contributed.iter().map(|(_, one)| *one).collect();
    let plan = &measurement.recorded.header.plan;
    let mut sum = Sum::default();
    sum.add(contributed.iter().copied(), lengths_ns);
    let total = |get: fn(&Point) -> u64| own.iter().map(|one| get(&one.point)).sum::<u64>() as f64;
    let wall_ns = total(|point| point.length_ns).max(1.0);
    let threads = own.first().map_or(1, |one| one.threads.max(1));
    let busy_ns: u64 = own.iter().map(|one| one.busy_ns()).sum();
    let share = |ns: f64| (ns / (wall_ns * f64::from(threads))).min(1.0);
    WorkerView {
        target: measurement.cell.target.clone(),
        workload: measurement.cell.workload.profile().into(),
        phase: measurement.phase.into(),
        load: measurement.cell.load.clone(),
        worker: own.first().map(|one| one.name.clone()).unwrap_or_default(),
        clients: own.iter().map(|one| one.point.clients).max().unwrap_or(0),
        rate_per_s: sum.rate_per_s(),
        response_ns_p99: sum.p99(plan.timeout_ns),
        share_of_plan: answered(&own).map(|(done, planned)| done / planned),
        cpu_share: share(busy_ns as f64),
        own_share: own
            .iter()
            .map(|one| one.point.own_share * one.point.length_ns as f64)
            .sum::<f64>()
            / wall_ns,
        waited_share: share(total(|point| point.generator_run_delay_ns)),
        disturbed_share: (total(|point| point.disturbance.generator_ns) / wall_ns).min(1.0),
        start_skew_ns: own.iter().map(|one| one.start_skew_ns).max().unwrap_or(0),
        rate_per_s_without: None,
        response_ns_p99_without: None,
    }
}

/// Requests that workers answered, and how many their part of the plan has; `None` under a closed
/// load.
fn answered(own: &[&Contributor]) -> Option<(f64, f64)> {
    let mut sum = (0.0, 0.0);
    for point in own.iter().map(|one| &one.point) {
        let planned_per_s = point.planned_per_s?;
        let counts = point.whole().map(|whole| &whole.counts);
        sum.0 += counts.map_or(0, |counts| counts.total() - counts.error) as f64;
        sum.1 += planned_per_s * point.length_ns as f64 / 1e9;
    }
    (sum.1 > 0.0).then_some(sum)
}

/// What a worker answered of its part of the plan, relative to all workers: the share, and how many
/// standard deviations of a Poisson process that is off. `None` under a closed load. A server that
/// does not keep up answers all of them less, and none is off.
pub(crate) fn against_all(measurement: &Measurement<'_>, name: &str) -> Option<(f64, f64)> {
    let points = held(measurement);
    let all: Vec<&Contributor> = points.iter().flat_map(|point| &point.contributors).collect();
    let own: Vec<&Contributor> = all.iter().filter(|one| one.name == name).copied().collect();
    let ((done, planned), (all_done, all_planned)) = (answered(&own)?, answered(&all)?);
    let expected = planned * (all_done / all_planned);
    Some((done / expected.max(1.0), (done - expected).abs() / expected.max(1.0).sqrt()))
}

/// The workers of all measurements.
pub(crate) fn workers(recorded: &Recorded, all: &[Measurement<'_>]) -> Vec<WorkerView> {
    if recorded.header.plan.places.workers == 0 {
        return Vec::new();
    }
    all.iter().flat_map(of).cloned().collect()
}

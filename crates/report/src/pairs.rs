//! Comparisons of all pairs of targets at the same profile, load and operation, judged as one
//! family.

use model::Load;
use stats::{Histogram, Paired, Stricter};

use crate::recorded::Recorded;
use crate::series::{MeasuredPoint, Operation};
use crate::view::{Comparison, Value};

/// Probability of one or more false differences in a whole run.
pub(crate) const ALPHA: f64 = 0.05;

/// Values of two targets in their common blocks, before they are judged.
struct Pair<'a> {
    phase: &'a MeasuredPoint<'a>,
    operation: &'a Operation<'a>,
    other: &'a MeasuredPoint<'a>,
    metric: &'static str,
    a: Vec<f64>,
    b: Vec<f64>,
    /// The same by a stricter count; a verdict must hold for both.
    strict: (Vec<f64>, Vec<f64>),
}

/// All comparisons of a run, in display order.
pub(crate) fn comparisons(recorded: &Recorded, phases: &[MeasuredPoint<'_>]) -> Vec<Comparison> {
    let pairs = pairs(phases, recorded.header.plan.timeout_ns);
    let paired: Vec<Paired<'_>> = pairs.iter().map(|p| Paired { a: &p.a, b: &p.b }).collect();
    let zone = recorded.header.plan.equivalence_zone;
    let strict = pairs.iter().map(|p| (Paired { a: &p.strict.0, b: &p.strict.1 }, p.stricter()));
    let strict: Vec<(Paired<'_>, Stricter)> = strict.collect();
    let judged = stats::strict_verdicts(&paired, &strict, zone, ALPHA);
    pairs.iter().zip(judged).filter_map(|(pair, judged)| comparison(pair, judged)).collect()
}

impl Pair<'_> {
    fn stricter(&self) -> Stricter {
        match self.metric {
            "rate_per_s" => Stricter::WallTime,
            _ => Stricter::FailuresAtTimeout,
        }
    }
}

fn pairs<'a>(phases: &'a [MeasuredPoint<'a>], timeout_ns: u64) -> Vec<Pair<'a>> {
    let mut found = Vec::new();
    for (i, phase) in phases.iter().enumerate() {
        for operation in &phase.operations {
            for other in phases[i + 1..].iter().filter(|other| same_place(phase, other)) {
                let twin = other.operations.iter().find(|o| o.name == operation.name);
                let both = twin.map(|twin| (operation, twin));
                found.extend(both.and_then(|both| pair(phase, other, both, timeout_ns)));
            }
        }
    }
    found
}

fn same_place(a: &MeasuredPoint<'_>, b: &MeasuredPoint<'_>) -> bool {
    a.cell.workload.profile() == b.cell.workload.profile()
        && a.cell.load == b.cell.load
        && a.name == b.name
        && a.cell.target != b.cell.target
}

/// The values of two operations in their common blocks; `None` if there is no common block.
fn pair<'a>(
    phase: &'a MeasuredPoint<'a>,
    other: &'a MeasuredPoint<'a>,
    (operation, twin): (&'a Operation<'a>, &Operation<'_>),
    timeout_ns: u64,
) -> Option<Pair<'a>> {
    let metric = phase.compared_by(operation);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let mut strict = (Vec::new(), Vec::new());
    for point in operation.blocks.iter().filter(|p| p.usable()) {
        let matching = twin.blocks.iter().find(|t| t.block == point.block && t.usable());
        let Some(matching) = matching else { continue };
        let (one, two) = (point.result, matching.result);
        if metric == "rate_per_s" {
            a.push(one.rate_per_s);
            b.push(two.rate_per_s);
            strict.0.push(point.wall_rate_per_s());
            strict.1.push(matching.wall_rate_per_s());
            continue;
        }
        let times = [one, two].map(|result| match metric {
            "response_ns_mean" => &result.response,
            _ => &result.service,
        });
        if times.iter().all(|t| !t.is_empty()) {
            // A shorter time is faster, so the two are swapped.
            a.push(times[1].mean_ns());
            b.push(times[0].mean_ns());
            strict.0.push(mean_with_failures(times[1], two.counts.error, timeout_ns));
            strict.1.push(mean_with_failures(times[0], one.counts.error, timeout_ns));
        }
    }
    (!a.is_empty()).then_some(Pair { phase, operation, other, metric, a, b, strict })
}

/// Mean time of answered operations and failures, where each failure counts as the timeout.
fn mean_with_failures(answered: &Histogram, failed: u64, timeout_ns: u64) -> f64 {
    let (count, failed) = (answered.count() as f64, failed as f64);
    let longest_ns = timeout_ns.max(answered.max_ns()) as f64;
    (answered.mean_ns() * count + longest_ns * failed) / (count + failed)
}

fn comparison(pair: &Pair<'_>, judged: stats::Comparison) -> Option<Comparison> {
    let ratio = judged.ratio?;
    let strict = judged.strict.and_then(|strict| Value::of(&strict).interval());
    Some(Comparison {
        workload: pair.phase.cell.workload.profile().into(),
        operation: pair.operation.name.clone(),
        load: pair.phase.cell.load.clone(),
        metric: pair.metric.into(),
        a: pair.phase.cell.target.clone(),
        b: pair.other.cell.target.clone(),
        blocks: ratio.blocks as u32,
        ratio: Value::of(&ratio).decided_with(strict),
        verdict: judged.verdict,
        doubt: judged.doubt.map(|doubt| doubt.to_string()),
    })
}

/// The comparison of `a` against `b`, inverted if it was stored the other way round.
pub(crate) fn against(
    comparisons: &[Comparison],
    place: (&str, &str, &Load),
    a: &str,
    b: &str,
) -> Option<Comparison> {
    let (workload, operation, load) = place;
    let found = comparisons.iter().find(|c| {
        c.workload == workload
            && c.operation == operation
            && c.load == *load
            && ((c.a == a && c.b == b) || (c.a == b && c.b == a))
    })?;
    Some(if found.a == a { found.clone() } else { inverse(found) })
}

/// The comparison from the point of view of the other target.
fn inverse(c: &Comparison) -> Comparison {
    Comparison {
        a: c.b.clone(),
        b: c.a.clone(),
        ratio: c.ratio.inverse(),
        verdict: c.verdict.turned(),
        ..c.clone()
    }
}

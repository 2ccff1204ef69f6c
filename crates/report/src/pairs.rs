//! Every pair of targets at the same profile, load and operation, judged as one family.

use model::Load;
use stats::Paired;

use crate::recorded::Recorded;
use crate::series::{MeasuredPhase, Operation};
use crate::view::{Comparison, Value};

/// Chance of one or more false differences in a whole run.
pub(crate) const ALPHA: f64 = 0.05;

/// Two targets whose blocks were matched, before they are judged.
struct Pair<'a> {
    phase: &'a MeasuredPhase<'a>,
    operation: &'a Operation<'a>,
    other: &'a MeasuredPhase<'a>,
    metric: &'static str,
    a: Vec<f64>,
    b: Vec<f64>,
}

/// All comparisons of a run, in the order in which results are shown.
pub(crate) fn comparisons(recorded: &Recorded, phases: &[MeasuredPhase<'_>]) -> Vec<Comparison> {
    let pairs = pairs(phases);
    let paired: Vec<Paired<'_>> = pairs.iter().map(|p| Paired { a: &p.a, b: &p.b }).collect();
    let zone = recorded.header.plan.equivalence_zone;
    let judged = stats::verdicts(&paired, zone, ALPHA);
    pairs.iter().zip(judged).filter_map(|(pair, judged)| comparison(pair, judged)).collect()
}

fn pairs<'a>(phases: &'a [MeasuredPhase<'a>]) -> Vec<Pair<'a>> {
    let mut found = Vec::new();
    for (i, phase) in phases.iter().enumerate() {
        for operation in &phase.operations {
            for other in phases[i + 1..].iter().filter(|other| same_place(phase, other)) {
                let twin = other.operations.iter().find(|o| o.name == operation.name);
                found.extend(twin.and_then(|twin| pair(phase, operation, other, twin)));
            }
        }
    }
    found
}

fn same_place(a: &MeasuredPhase<'_>, b: &MeasuredPhase<'_>) -> bool {
    a.cell.workload.profile() == b.cell.workload.profile()
        && a.cell.load == b.cell.load
        && a.name == b.name
        && a.cell.target != b.cell.target
}

/// The two operations' values in the blocks that have both; `None` when there is no such block.
fn pair<'a>(
    phase: &'a MeasuredPhase<'a>,
    operation: &'a Operation<'a>,
    other: &'a MeasuredPhase<'a>,
    twin: &Operation<'_>,
) -> Option<Pair<'a>> {
    let metric = phase.compared_by(operation);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for point in operation.points.iter().filter(|p| p.usable()) {
        let matching = twin.points.iter().find(|t| t.block == point.block && t.usable());
        let Some(matching) = matching else { continue };
        let (one, two) = (point.result, matching.result);
        if metric == "rate_per_s" {
            a.push(one.rate_per_s);
            b.push(two.rate_per_s);
            continue;
        }
        let times = [one, two].map(|result| match metric {
            "response_ns_mean" => &result.response,
            _ => &result.service,
        });
        if times.iter().all(|t| !t.is_empty()) {
            // The shorter time is the faster, so the two change places.
            a.push(times[1].mean_ns());
            b.push(times[0].mean_ns());
        }
    }
    (!a.is_empty()).then_some(Pair { phase, operation, other, metric, a, b })
}

fn comparison(pair: &Pair<'_>, judged: stats::Comparison) -> Option<Comparison> {
    let ratio = judged.ratio?;
    Some(Comparison {
        workload: pair.phase.cell.workload.profile().into(),
        operation: pair.operation.name.clone(),
        load: pair.phase.cell.load.clone(),
        metric: pair.metric.into(),
        a: pair.phase.cell.target.clone(),
        b: pair.other.cell.target.clone(),
        blocks: ratio.blocks as u32,
        ratio: Value::new(ratio.center, ratio.lo(), ratio.hi()),
        verdict: judged.verdict.name().into(),
        doubt: judged.doubt.map(|d| d.to_string()),
    })
}

/// The comparison of `a` against `b`, turned round where it was stored the other way.
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
    Some(if found.a == a { found.clone() } else { turned(found) })
}

/// The same comparison seen from the other target.
fn turned(c: &Comparison) -> Comparison {
    let verdict = match c.verdict.as_str() {
        "faster" => "slower",
        "slower" => "faster",
        same => same,
    };
    Comparison {
        a: c.b.clone(),
        b: c.a.clone(),
        ratio: c.ratio.turned(),
        verdict: verdict.into(),
        ..c.clone()
    }
}

//! The highest rates of two targets, from searches or ramps, compared by block with the rules of
//! all comparisons.

use model::{Cell, Plan};
use stats::{Paired, Verdict};

use crate::pairs::ALPHA;
use crate::view::{Comparison, Value};

/// One kind of highest rate, for two targets.
pub(crate) struct Highest<'a> {
    /// Name of the metric.
    pub(crate) metric: &'static str,
    /// Name of the phase.
    pub(crate) operation: &'a str,
    pub(crate) sides: [Side<'a>; 2],
    /// Requests per second of each target in the blocks in which both have a value.
    pub(crate) values: (Vec<f64>, Vec<f64>),
}

/// One of the two targets.
#[derive(Clone, Copy)]
pub(crate) struct Side<'a> {
    pub(crate) cell: &'a Cell,
    /// Why the store sustains more than was measured; `None` if it does not.
    pub(crate) lower_bound_reason: Option<&'a str>,
}

/// The comparisons, corrected for their number; those without a common block are omitted.
pub(crate) fn compared(plan: &Plan, mut all: Vec<Highest<'_>>) -> Vec<Comparison> {
    all.retain(|one| !one.values.0.is_empty());
    let values: Vec<Paired<'_>> =
        all.iter().map(|Highest { values: (a, b), .. }| Paired { a, b }).collect();
    let judged = stats::verdicts(&values, plan.equivalence_zone, ALPHA);
    all.iter().zip(judged).filter_map(|(one, judged)| comparison(one, judged)).collect()
}

fn comparison(one: &Highest<'_>, judged: stats::Comparison) -> Option<Comparison> {
    let ratio = judged.ratio?;
    let [a, b] = one.sides;
    let bounded = bounded(judged.verdict, one.sides);
    Some(Comparison {
        workload: a.cell.workload.profile().into(),
        operation: one.operation.into(),
        load: a.cell.load.clone(),
        metric: one.metric.into(),
        blocks: one.values.0.len() as u32,
        a: a.cell.target.clone(),
        b: b.cell.target.clone(),
        ratio: Value::of(&ratio),
        verdict: if bounded.is_some() { Verdict::Undecided } else { judged.verdict },
        doubt: bounded.or(judged.doubt.map(|doubt| doubt.to_string())),
    })
}

/// Why there is no verdict if a rate is only a lower bound of what its store sustains.
fn bounded(verdict: Verdict, [a, b]: [Side<'_>; 2]) -> Option<String> {
    let why = |side: Side<'_>| {
        let why = side.lower_bound_reason?;
        Some(format!("{} sustains more than measured: {why}", side.cell.target))
    };
    match verdict {
        Verdict::Faster => why(b),
        Verdict::Slower => why(a),
        // More blocks do not turn a lower bound into a value.
        Verdict::Equal | Verdict::Undecided => why(a).or_else(|| why(b)),
    }
}

/// What a comparison of highest rates compares; `None` for any other comparison.
pub(crate) fn what(c: &Comparison) -> Option<&'static str> {
    match c.metric.as_str() {
        "reached_per_s" => Some("highest rate reached"),
        "knee_per_s" => Some("knee"),
        "within_limit_per_s" => Some("highest rate within the limit"),
        "highest_per_s" => Some("highest rate within the limits"),
        _ => None,
    }
}

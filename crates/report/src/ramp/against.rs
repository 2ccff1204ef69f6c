//! The highest rates of two targets, compared block by block by the rules of all comparisons.

use model::study::HighestRate;
use stats::{Paired, Verdict};

use super::climb::{Climb, Ramp};
use crate::pairs::ALPHA;
use crate::recorded::Recorded;
use crate::view::{Comparison, RampOutcome, RampView, Value};

/// What is compared: the metric's name, and which of the highest rates it is.
const COMPARED: [(&str, HighestRate); 3] = [
    ("reached_per_s", HighestRate::Reached),
    ("knee_per_s", HighestRate::Knee),
    ("within_limit_per_s", HighestRate::WithinLimit),
];

/// One of the highest rates of a ramp.
pub(crate) fn highest(climb: &Climb<'_>, which: HighestRate, limit_ns: Option<u64>) -> Option<f64> {
    match which {
        HighestRate::Reached => Some(climb.reached()),
        HighestRate::Knee => Some(climb.held()?.rate()),
        HighestRate::WithinLimit => Some(climb.within(limit_ns?)?.rate()),
    }
}

/// What `read` reads of both in the blocks that have it of both.
pub(crate) fn paired(
    a: &Ramp<'_>,
    b: &Ramp<'_>,
    read: impl Fn(&Climb<'_>) -> Option<f64>,
) -> (Vec<f64>, Vec<f64>) {
    let twin = |climb: &Climb<'_>| {
        let other = b.whole().find(|other| other.trial.block == climb.trial.block)?;
        Some((read(climb)?, read(other)?))
    };
    a.whole().filter_map(twin).unzip()
}

/// Every pair of targets of a profile.
pub(crate) fn comparisons(recorded: &Recorded, ramps: &[(Ramp<'_>, RampView)]) -> Vec<Comparison> {
    let limit_ns = recorded.header.plan.limit_ns;
    let mut pairs = Vec::new();
    for (i, (a, of_a)) in ramps.iter().enumerate() {
        for (b, of_b) in &ramps[i + 1..] {
            if of_a.workload != of_b.workload || of_a.operation != of_b.operation {
                continue;
            }
            for (metric, which) in COMPARED {
                let values = paired(a, b, |climb| highest(climb, which, limit_ns));
                if !values.0.is_empty() {
                    pairs.push((metric, of_a, of_b, values));
                }
            }
        }
    }
    let values: Vec<Paired<'_>> = pairs.iter().map(|(.., (a, b))| Paired { a, b }).collect();
    let judged = stats::verdicts(&values, recorded.header.plan.equivalence_zone, ALPHA);
    let compared = pairs.iter().zip(judged);
    compared
        .filter_map(|((metric, a, b, (values, _)), judged)| {
            comparison(metric, (a, b), values.len(), judged)
        })
        .collect()
}

fn comparison(
    metric: &str,
    (a, b): (&RampView, &RampView),
    blocks: usize,
    judged: stats::Comparison,
) -> Option<Comparison> {
    let ratio = judged.ratio?;
    let bounded = bounded(judged.verdict, (a, b));
    Some(Comparison {
        workload: a.workload.clone(),
        operation: a.operation.clone(),
        load: a.load.clone(),
        metric: metric.into(),
        blocks: blocks as u32,
        a: a.target.clone(),
        b: b.target.clone(),
        ratio: Value::of(&ratio),
        verdict: if bounded.is_some() { Verdict::Undecided } else { judged.verdict },
        doubt: bounded.or(judged.doubt.map(|doubt| doubt.to_string())),
    })
}

/// Why a verdict cannot be given where a rate is only the least that its store bears.
fn bounded(verdict: Verdict, (a, b): (&RampView, &RampView)) -> Option<String> {
    match verdict {
        Verdict::Faster => bears_more(b),
        Verdict::Slower => bears_more(a),
        // What bounds a rate on one side only is no matter of more blocks.
        Verdict::Equal | Verdict::Undecided => [a, b].into_iter().find_map(bears_more),
    }
}

/// Why a store bears more than its ramp tells; `None` where the ramp found its limit, or nothing.
pub(crate) fn bears_more(view: &RampView) -> Option<String> {
    let why = match view.outcome {
        RampOutcome::Generator => "the generator was the limit",
        RampOutcome::NeverMissed => "no stage was too much for it",
        RampOutcome::Found | RampOutcome::NeverHeld | RampOutcome::Broken => return None,
    };
    Some(format!("{} bears more than was shown: {why}", view.target))
}

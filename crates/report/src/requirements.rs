//! The user's requirements, and whether each result meets them.

use model::{Counts, Plan, Requirement, Slo};
use std::collections::BTreeMap;

use crate::distribution::Merged;
use crate::show;
use crate::view::{Required, Row, Value, View};

/// Checks each requirement of a plan for one row, given its times, counts, unsent requests and
/// other metrics.
pub(crate) fn of_row(
    plan: &Plan,
    times: &Merged,
    (counts, unsent): (&Counts, u64),
    metrics: &BTreeMap<String, Value>,
    seed: u64,
) -> Vec<Required> {
    let required = |requirement: &Requirement| {
        let (measured, limit) = match *requirement {
            Requirement::Slo(slo @ Slo::Percentile { limit_ns, .. }) => {
                (times.at(1.0 - slo.allowed()), limit_ns as f64)
            }
            Requirement::Slo(slo @ Slo::Errors { .. }) => {
                let all = (counts.total() + unsent).max(1) as f64;
                (Some(Value::alone((counts.error + unsent) as f64 / all)), slo.allowed())
            }
            Requirement::Mean(ns) => {
                // The times of failed requests are unknown, so the mean is a lower bound.
                let is_bound = counts.error + unsent > 0;
                let mean = times.mean(seed);
                let bound = mean.filter(|_| is_bound).map(|mean| Value::at_least(mean.center));
                (bound.or(mean), ns as f64)
            }
            Requirement::Max(ns) => (times.largest(), ns as f64),
            Requirement::Rate(per_s) => (metrics.get("rate_per_s").copied(), per_s as f64),
        };
        let is_met = measured.is_some_and(|value| match requirement {
            Requirement::Rate(_) => value.center > limit,
            // A lower bound cannot show that the value is below the limit.
            _ => value.center < limit && !value.at_least,
        });
        let shown = measured.map(|value| match requirement {
            Requirement::Rate(_) => show::rate_value(&value),
            Requirement::Slo(Slo::Errors { .. }) => show::percent(value.center),
            _ => show::ns_value(&value),
        });
        Required {
            requirement: requirement.to_string(),
            words: requirement.words(),
            measured,
            shown: shown.unwrap_or_else(|| "not measured".into()),
            is_met,
        }
    };
    plan.requirements.iter().map(required).collect()
}

/// The distinct requirements of a run in readable form, each with all rows it applies to.
pub(crate) fn by_words(view: &View) -> Vec<(&str, Vec<(&Row, &Required)>)> {
    let mut found: Vec<(&str, Vec<(&Row, &Required)>)> = Vec::new();
    for (row, required) in view.cells.iter().flat_map(|r| r.required.iter().map(move |q| (r, q))) {
        match found.iter_mut().find(|(words, _)| *words == required.words) {
            Some((_, rows)) => rows.push((row, required)),
            None => found.push((&required.words, vec![(row, required)])),
        }
    }
    found
}

//! What the user required of every result, and whether each meets it.

use model::{Counts, Plan, Requirement, Slo};
use std::collections::BTreeMap;

use crate::distribution::Merged;
use crate::show;
use crate::view::{Required, Row, Value, View};

/// Each requirement of a plan for one row: its times, its counts with what was never sent, and its
/// other metrics.
pub(crate) fn of_row(
    plan: &Plan,
    times: &Merged,
    (counts, unsent): (&Counts, u64),
    metrics: &BTreeMap<String, Value>,
    seed: u64,
) -> Vec<Required> {
    let required = |requirement: &Requirement| {
        let (measured, limit, is_floor) = match *requirement {
            Requirement::Slo(slo @ Slo::Percentile { limit_ns, .. }) => {
                (times.at(1.0 - slo.allowed()), limit_ns as f64, false)
            }
            Requirement::Slo(slo @ Slo::Errors { .. }) => {
                let all = (counts.total() + unsent).max(1) as f64;
                let share = (counts.error + unsent) as f64 / all;
                (Some(Value::alone(share)), slo.allowed(), false)
            }
            Requirement::Mean(ns) => {
                // What failed took longer than is known.
                let is_bound = counts.error + unsent > 0;
                let mean = times.mean(seed);
                let bound = mean.filter(|_| is_bound).map(|mean| Value::at_least(mean.center));
                (bound.or(mean), ns as f64, false)
            }
            Requirement::Max(ns) => (times.largest(), ns as f64, false),
            Requirement::Rate(per_s) => (metrics.get("rate_per_s").copied(), per_s as f64, true),
        };
        // Of a bound it is only known that the value is no less.
        let is_met = measured.is_some_and(|value| {
            if is_floor { value.center > limit } else { value.center < limit && !value.at_least }
        });
        Required {
            requirement: requirement.to_string(),
            words: requirement.words(),
            measured,
            is_met,
        }
    };
    plan.requirements.iter().map(required).collect()
}

/// A measured value in the unit of its requirement.
pub(crate) fn shown(required: &Required) -> String {
    let Some(value) = &required.measured else { return "nothing was measured".into() };
    match required.requirement.split(['<', '>']).next() {
        Some("rate") => show::rate_value(value),
        Some("error" | "errors") => show::percent(value.center),
        _ => show::ns_value(value),
    }
}

/// Each requirement of a run once, by its words, with all rows that it was asked of.
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

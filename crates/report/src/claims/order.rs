//! The order of targets by their rates: the highest, the lowest, or several in a row.

use model::study::claims::{Extreme, Order};

use super::context::{Context, Kind};
use super::judged::{Judged, all_cases, loads, not_run};
use crate::cases::Case;
use crate::show;

/// The end of the order at which a claim places a target.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum End {
    First,
    Last,
}

/// A claim on the first or last of all targets.
pub(super) struct ByEnd<'a>(pub(super) &'a Extreme, pub(super) End);

impl Kind for ByEnd<'_> {
    fn expected(&self) -> String {
        let Self(Extreme { target, operations, clients, among }, end) = self;
        let of = if among.is_empty() { String::new() } else { format!(" of {}", among.join(", ")) };
        let place = if *end == End::First { "fastest" } else { "slowest" };
        format!("{target} {place}{of} {}", loads(operations, clients))
    }

    fn judge(&self, context: &Context<'_>) -> Result<Judged, Judged> {
        let Self(Extreme { target, operations, clients, among }, end) = self;
        let mut others = context.targets(among);
        others.retain(|other| other != target);
        let pairs: Vec<(&str, &str)> =
            others.iter().map(|other| (target.as_str(), *other)).collect();
        if pairs.is_empty() {
            return Err(not_run(format!("there is no other target to compare {target} with")));
        }
        let left_out: Vec<String> = context
            .plan
            .targets
            .iter()
            .filter(|t| t.name != *target && t.control_of.is_none())
            .filter(|t| among.is_empty() || among.contains(&t.name))
            .filter(|t| !others.contains(&t.name.as_str()))
            .map(|t| t.name.clone())
            .collect();
        let missing = if left_out.is_empty() {
            String::new()
        } else {
            format!("; without {}, which has no result", left_out.join(" and "))
        };
        let range = if *end == End::First { (1.0, f64::INFINITY) } else { (0.0, 1.0) };
        let Judged(verdict, ratio, note) =
            judge_pairs(&pairs, (operations, clients), range, context)?;
        Ok(Judged(verdict, ratio, note + &missing))
    }
}

impl Kind for Order {
    fn expected(&self) -> String {
        let Self { targets, operations, clients } = self;
        format!(
            "{} in this order, fastest first {}",
            targets.join(", "),
            loads(operations, clients)
        )
    }

    fn judge(&self, context: &Context<'_>) -> Result<Judged, Judged> {
        let pairs = self.targets.windows(2).map(|pair| (pair[0].as_str(), pair[1].as_str()));
        let pairs: Vec<_> = pairs.collect();
        let range = (1.0, f64::INFINITY);
        judge_pairs(&pairs, (&self.operations, &self.clients), range, context)
    }
}

/// Judges the ratio of each pair in every case.
fn judge_pairs(
    pairs: &[(&str, &str)],
    (operations, clients): (&[String], &[u32]),
    range: (f64, f64),
    context: &Context<'_>,
) -> Result<Judged, Judged> {
    let (mut cases, mut doubt) = (Vec::new(), None);
    for (a, b) in pairs {
        for operation in operations {
            for clients in clients {
                let ratio = context.ratio_of_rates(operation, *clients, a, b)?;
                let place = format!("{operation} at {clients} concurrent against {b}");
                doubt = doubt.or(ratio.doubt());
                let ends = ratio.ends_of_order();
                let open = ratio.open.map_or_else(String::new, |open| format!("; {open}"));
                let times = show::ratio(ratio.value.center);
                let caveat = format!(", where {a} has {times} its rate{open}");
                cases.push(Case { ratio: ratio.value, ends, place, caveat });
            }
        }
    }
    all_cases(&cases, range, (doubt, "operation"), |case| case.caveat.clone())
}

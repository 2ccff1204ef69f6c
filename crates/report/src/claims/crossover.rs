//! The number of clients from which on one target is faster than another.

use model::study::claims::Crossover;
use stats::{Crossing, Doubt, crossover};

use super::context::{Context, Kind};
use super::judged::{Judged, all_cases, not_run};
use crate::blocks::ratio_over_blocks;
use crate::cases::Case;
use crate::view::{ClaimUnit, Value};

impl Kind for Crossover {
    fn expected(&self) -> String {
        let Self { a, b, operations, min, max, .. } = self;
        let operations = operations.join(", ");
        format!("{a} overtakes {b} from {min} to {max} clients ({operations})")
    }

    fn judge(&self, context: &Context<'_>) -> Result<Judged, Judged> {
        let (mut cases, mut doubt) = (Vec::new(), None);
        for operation in &self.operations {
            let (case, own_doubt) = case(self, operation, context)?;
            doubt = doubt.or(own_doubt);
            cases.push(case);
        }
        let range = (self.min, self.max);
        all_cases(&cases, range, (doubt, "operation"), |case| case.caveat.clone())
    }

    fn unit(&self) -> ClaimUnit {
        ClaimUnit::Clients
    }
}

fn case(
    claim: &Crossover,
    operation: &str,
    context: &Context<'_>,
) -> Result<(Case, Option<Doubt>), Judged> {
    let Crossover { a, b, clients, .. } = claim;
    let blocks = context.ratios_by_clients(operation, (a, b), clients)?;
    let found: Vec<Crossing> = blocks.iter().filter_map(|points| crossover(points)).collect();
    let doubt = Doubt::about(found.len());
    let loads = found.iter().map(|crossing| crossing.load());
    let Some(value) = ratio_over_blocks(loads, context.plan.seed) else {
        return Err(not_run(format!("no block has all rates of {operation}")));
    };
    let count = |kind: fn(&Crossing) -> bool| found.iter().filter(|c| kind(c)).count();
    let earlier = count(|c| matches!(c, Crossing::AtMost(_)));
    let later = count(|c| matches!(c, Crossing::Above(_)));
    let (fewest, most) = (clients[0], clients[clients.len() - 1]);
    let mut caveat = String::new();
    let mut note = |n: usize, words: String| {
        if n > 0 {
            caveat += &format!("; in {n} of {} blocks {words}", found.len());
        }
    };
    note(earlier, format!("{a} is ahead from {fewest} on"));
    note(later, format!("{b} is still ahead at {most}"));
    let ends = value.interval().filter(|_| doubt.is_none());
    // A crossover outside the measured loads is only known to be beyond their end.
    let ends = ends.map(|(lo, hi)| {
        let lo = if earlier > 0 { 0.0 } else { lo };
        (lo, if later > 0 { f64::INFINITY } else { hi })
    });
    let value = match (ends, later > 0) {
        (Some((lo, _)), true) => Value::new(value.center, Some(lo), None),
        _ => value,
    };
    Ok((Case { ratio: value, ends, place: operation.into(), caveat }, doubt))
}

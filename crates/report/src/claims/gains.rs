//! One target that gains on another with the number of clients.

use model::study::claims::Gains;
use stats::Doubt;

use super::context::{Context, Kind};
use super::judged::{Judged, all_cases, not_run};
use crate::blocks::ratio_over_blocks;
use crate::cases::Case;
use crate::show;

impl Kind for Gains {
    fn expected(&self) -> String {
        let Self { a, b, operations, clients, min } = self;
        let (few, many) = ends(clients);
        let operations = operations.join(", ");
        let min = show::ratio(*min);
        format!("{a} / {b} at {many} clients at least {min} that at {few} ({operations})")
    }

    fn judge(&self, context: &Context<'_>) -> Result<Judged, Judged> {
        let Self { a, b, operations, clients, min } = self;
        let (few, many) = ends(clients);
        let (mut cases, mut doubt) = (Vec::new(), None);
        for operation in operations {
            let blocks = context.ratios_by_clients(operation, (a, b), &[few, many])?;
            let gains = blocks.iter().map(|ratios| ratios[1].1 / ratios[0].1);
            let Some(ratio) = ratio_over_blocks(gains, context.plan.seed) else {
                return Err(not_run(format!("no block has both rates of {operation}")));
            };
            let own_doubt = Doubt::about(blocks.len());
            doubt = doubt.or(own_doubt);
            let ends = ratio.interval().filter(|_| own_doubt.is_none());
            cases.push(Case { ratio, ends, place: operation.clone(), caveat: String::new() });
        }
        all_cases(&cases, (*min, f64::INFINITY), (doubt, "operation"), |case| {
            let times = show::ratio(case.ratio.center);
            format!(", where {a} / {b} changes by {times} from {few} to {many} clients")
        })
    }
}

/// The fewest and the most clients.
fn ends(clients: &[u32]) -> (u32, u32) {
    let few = clients.first().copied().unwrap_or_default();
    (few, clients.last().copied().unwrap_or_default())
}

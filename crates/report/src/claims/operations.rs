//! The rate of one operation divided by that of another.

use model::Load;
use model::study::claims::Operations;
use stats::Doubt;

use super::context::{Context, Kind};
use super::judged::{Judged, all_cases, range};
use crate::cases::Case;
use crate::show;

impl Kind for Operations {
    fn expected(&self) -> String {
        let Self { targets, operation, than, clients, min, max } = self;
        let (targets, range) = (targets.join(" and "), range(*min, *max));
        format!("{operation} / {than} {range} on {targets} ({})", Load::closed(*clients))
    }

    fn judge(&self, context: &Context<'_>) -> Result<Judged, Judged> {
        let Self { targets, operation, than, clients, min, max } = self;
        let (mut cases, mut doubt) = (Vec::new(), None);
        for target in targets {
            let operations = (operation.as_str(), than.as_str());
            let (ratio, blocks) = context.ratio_of_operations(target, operations, *clients)?;
            let own_doubt = Doubt::about(blocks);
            let ends = ratio.interval().filter(|_| own_doubt.is_none());
            doubt = doubt.or(own_doubt);
            cases.push(Case { ratio, ends, place: target.clone(), caveat: String::new() });
        }
        all_cases(&cases, (*min, max.unwrap_or(f64::INFINITY)), (doubt, "target"), |case| {
            format!(", where {operation} has {} the rate of {than}", show::ratio(case.ratio.center))
        })
    }
}

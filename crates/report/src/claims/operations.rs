//! The rate of one operation divided by that of another.

use model::Load;
use model::study::claims::Operations;

use super::context::{Context, Kind};
use super::judged::{Judged, all_measured, range};
use crate::show;

impl Kind for Operations {
    fn expected(&self) -> String {
        let Self { targets, operation, than, clients, min, max } = self;
        let (targets, range) = (targets.join(" and "), range(*min, *max));
        format!("{operation} / {than} {range} on {targets} ({})", Load::closed(*clients))
    }

    fn judge(&self, context: &Context<'_>) -> Result<Judged, Judged> {
        let Self { targets, operation, than, clients, min, max } = self;
        let operations = (operation.as_str(), than.as_str());
        let of_target = |target: &String| {
            Ok((target.clone(), context.ratio_of_operations(target, operations, *clients)?))
        };
        let range = (*min, max.unwrap_or(f64::INFINITY));
        all_measured(targets.iter().map(of_target), range, "target", |case| {
            format!(", where {operation} has {} the rate of {than}", show::ratio(case.ratio.center))
        })
    }
}

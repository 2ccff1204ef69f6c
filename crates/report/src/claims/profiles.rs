//! The rate of an operation in one profile divided by that in another.

use model::study::claims::Profiles;

use super::context::{Context, Kind};
use super::judged::{Judged, all_measured, range};
use crate::show;

impl Kind for Profiles {
    fn expected(&self) -> String {
        let Self { targets, operation, than, clients, min, max } = self;
        let (targets, range) = (targets.join(" and "), range(*min, *max));
        format!("{operation} / that of profile {than} {range} on {targets} ({clients} clients)")
    }

    fn judge(&self, context: &Context<'_>) -> Result<Judged, Judged> {
        let Self { targets, operation, than, clients, min, max } = self;
        let of_target = |target: &String| {
            let operation = (target.as_str(), operation.as_str());
            Ok((target.clone(), context.ratio_of_profiles(operation, *clients, than)?))
        };
        let range = (*min, max.unwrap_or(f64::INFINITY));
        all_measured(targets.iter().map(of_target), range, "target", |case| {
            let ratio = show::ratio(case.ratio.center);
            format!(", where {operation} has {ratio} the rate of profile {than}")
        })
    }
}

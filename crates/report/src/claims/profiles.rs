//! The rate of an operation in one profile divided by that in another.

use model::study::claims::Profiles;
use stats::Doubt;

use super::context::{Context, Kind};
use super::judged::{Judged, all_cases, range};
use crate::cases::Case;
use crate::show;

impl Kind for Profiles {
    fn expected(&self) -> String {
        let Self { targets, operation, than, clients, min, max } = self;
        let (targets, range) = (targets.join(" and "), range(*min, *max));
        format!("{operation} / that of profile {than} {range} on {targets} ({clients} clients)")
    }

    fn judge(&self, context: &Context<'_>) -> Result<Judged, Judged> {
        let Self { targets, operation, than, clients, min, max } = self;
        let (mut cases, mut doubt) = (Vec::new(), None);
        for target in targets {
            let (ratio, blocks) = context.ratio_of_profiles((target, operation), *clients, than)?;
            let own_doubt = Doubt::about(blocks);
            let ends = ratio.interval().filter(|_| own_doubt.is_none());
            doubt = doubt.or(own_doubt);
            cases.push(Case { ratio, ends, place: target.clone(), caveat: String::new() });
        }
        all_cases(&cases, (*min, max.unwrap_or(f64::INFINITY)), (doubt, "target"), |case| {
            let ratio = show::ratio(case.ratio.center);
            format!(", where {operation} has {ratio} the rate of profile {than}")
        })
    }
}

//! Growth of an operation's cost with the size of the data set.

use model::Load;
use model::study::claims::Growth;

use super::context::{Context, Kind};
use super::judged::{Judged, by_range, not_run, undecided};
use crate::view::ClaimUnit;

impl Kind for Growth {
    fn expected(&self) -> String {
        let Self { target, operation, clients, min, max } = self;
        let load = Load::closed(*clients);
        format!("cost of {operation} on {target} ∝ size^{min} to size^{max} ({load})")
    }

    fn judge(&self, context: &Context<'_>) -> Result<Judged, Judged> {
        let Self { target, operation, clients, min, max } = self;
        let load = Load::closed(*clients);
        let own = context.growth.iter().find(|curve| {
            curve.workload == context.profile
                && (&curve.target, &curve.operation, &curve.load) == (target, operation, &load)
        });
        let Some(slope) = own.and_then(|curve| curve.slope) else {
            let what = format!("{operation} with {load} on {target}");
            return Err(not_run(format!("{what} was not measured at several sizes")));
        };
        if slope.interval().is_none() {
            return Err(undecided(Some(slope), "the blocks yield no interval"));
        }
        Ok(by_range(slope, (*min, *max), &format!("the exponent is {:.2}", slope.center)))
    }

    fn unit(&self) -> ClaimUnit {
        ClaimUnit::Exponent
    }
}

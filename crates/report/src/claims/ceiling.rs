//! The highest latency under overload.

use model::study::claims::Ceiling;
use stats::Doubt;

use super::context::{Context, Kind};
use super::judged::{Judged, not_run, undecided};
use super::ramps::{judged, plain};
use crate::blocks::ratio_over_blocks;
use crate::show;
use crate::view::ClaimUnit;

impl Kind for Ceiling {
    fn expected(&self) -> String {
        let Self { target, operation, min_ms, max_ms } = self;
        let (min, max) = (show::ns(min_ms * 1e6), show::ns(max_ms * 1e6));
        format!("highest p99 of {operation} on {target} in any stage from {min} to {max}")
    }

    fn judge(&self, context: &Context<'_>) -> Result<Judged, Judged> {
        let Self { target, operation, min_ms, max_ms } = self;
        let (ramp, view) = context.ramp(target)?;
        let highest = ramp.whole().filter_map(|ladder| {
            let times = ladder.stages.iter().filter_map(|s| s.quantile_of(operation, 0.99));
            times.reduce(f64::max)
        });
        let highest: Vec<f64> = highest.collect();
        let blocks = highest.len();
        let Some(ratio) = ratio_over_blocks(highest.into_iter(), context.plan.seed) else {
            return Err(not_run(format!("no stage of {target} has a p99 of {operation}")));
        };
        if let Some(doubt) = Doubt::about(blocks) {
            return Err(undecided(Some(ratio), doubt.to_string()));
        }
        if view.is_lower_bound() {
            return Err(undecided(Some(ratio), format!("{target} was not overloaded")));
        }
        let case = plain(ratio, target.clone());
        judged([Ok(case)].into_iter(), (min_ms * 1e6, max_ms * 1e6), "target", |case| {
            format!("the highest p99 of {operation} is {}", show::ns(case.ratio.center))
        })
    }

    fn unit(&self) -> ClaimUnit {
        ClaimUnit::Ns
    }
}

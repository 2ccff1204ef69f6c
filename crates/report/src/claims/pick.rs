//! Which of two targets to prefer.

use model::study::claims::Pick;

use super::context::{Context, Kind};
use super::judged::Judged;
use crate::ramp::{Ladder, StageResult};
use crate::show;
use crate::view::{ClaimVerdict, Value};

impl Kind for Pick {
    fn expected(&self) -> String {
        let Self { target, over, share } = self;
        let share = show::percent(*share);
        format!(
            "{target} sustains no less than {over} and is no slower at {share} of the lower knee"
        )
    }

    fn judge(&self, context: &Context<'_>) -> Result<Judged, Judged> {
        let Self { target, over, share } = self;
        let knees =
            context.ratio_of_ramps((target, over), |ladder| Some(ladder.last_passing()?.rate()))?;
        let place = format!("{} of the lower knee", show::percent(*share));
        let speed = context.each((target, over), &place, |one, two| {
            let rate = share * one.last_passing()?.rate().min(two.last_passing()?.rate());
            let p99 =
                |ladder: &Ladder<'_>| ladder.at_rate(rate, |s: &StageResult<'_>| s.quantile(0.99));
            Some(p99(two)? / p99(one)?)
        })?;
        let edge = 1.0 / (1.0 + context.plan.equivalence_zone);
        let surely_behind = |v: &Value| v.interval().is_some_and(|(_, hi)| hi < edge);
        let not_behind = |v: &Value| v.interval().is_some_and(|(lo, _)| lo >= edge);
        let sustains = context.lower_bound((target, over)).map_or_else(String::new, |bounded| {
            format!(" (for {bounded} only a lower bound is known)")
        });
        let figures = format!(
            "{target} sustains {} the rate of {over}{sustains}, and answers {} as fast at {place}",
            show::ratio_value(&knees),
            show::ratio_value(&speed)
        );
        let (verdict, pick) = match (surely_behind(&knees), surely_behind(&speed)) {
            (true, true) => (ClaimVerdict::Refuted, format!("prefer {over} here")),
            (true, false) => (ClaimVerdict::Refuted, format!("prefer {over} here for high rates")),
            (false, true) => (ClaimVerdict::Refuted, format!("prefer {over} here for low latency")),
            _ if not_behind(&knees) && not_behind(&speed) => {
                (ClaimVerdict::Confirmed, format!("{target} is preferable here too"))
            }
            _ => (ClaimVerdict::Undecided, "neither is clearly preferable here".into()),
        };
        Ok(Judged(verdict, Some(knees), format!("{pick}: {figures}")))
    }
}

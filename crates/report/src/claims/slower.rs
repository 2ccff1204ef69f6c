//! One operation that takes longer than another.

use model::study::claims::{Figure, Slower};

use super::context::{Context, Kind};
use super::judged::{Judged, range, undecided};
use super::ramps::judged;
use crate::cases::Case;
use crate::ramp::{Controls, Ladder, StageResult};
use crate::show;
use crate::view::Value;

impl Kind for Slower {
    fn expected(&self) -> String {
        let Self { operation, than, targets, min, max, .. } = self;
        let range = range(*min, *max);
        format!(
            "{} of {operation} / {than} {range} ({}, separately and in both orders)",
            self.of.name(),
            targets.join(" and ")
        )
    }

    /// Judges only by the control phases: in the ramp's own pairs one operation always comes first,
    /// so its latency includes the effect of its position.
    fn judge(&self, context: &Context<'_>) -> Result<Judged, Judged> {
        let Self { operation: slow, than: fast, targets, .. } = self;
        let case = |target: &String| {
            let (apart, both_orders) = both_ways(self, target, context)?;
            // Both must agree, so use the union of both intervals.
            let both = both_orders.interval();
            let ends = both.and_then(|both| apart.decided_with(Some(both)).interval());
            let caveat = format!(
                "{slow} takes {} as long as {fast} with independent arrivals, and {} over pairs \
                 of both orders{}",
                show::ratio_value(&apart),
                show::ratio_value(&both_orders),
                own_pairs(self, target, context)
            );
            Ok(Case { ratio: apart, ends, place: target.clone(), caveat })
        };
        let range = (self.min, self.max.unwrap_or(f64::INFINITY));
        judged(targets.iter().map(case), range, "target", |case| case.caveat.clone())
    }
}

fn names(claim: &Slower) -> (&str, &str) {
    (&claim.operation, &claim.than)
}

/// The quantile compared; `None` for the mean.
fn quantile(claim: &Slower) -> Option<f64> {
    (claim.of == Figure::P99).then_some(0.99)
}

/// Ratio of one operation to another on a target: with independent arrivals, and over both
/// orders.
fn both_ways(
    claim: &Slower,
    target: &str,
    context: &Context<'_>,
) -> Result<(Value, Value), Judged> {
    let (ramp, view) = context.ramp(target)?;
    let Some(controls) = Controls::of(ramp.cell) else {
        let why = "no control phases: in its pairs one operation always comes first";
        return Err(undecided(None, why));
    };
    if let Some(doubt) = view.place.as_ref().and_then(|place| place.doubt.as_ref()) {
        return Err(undecided(None, format!("control phases of {target}: {doubt}")));
    }
    let (names, q) = (names(claim), quantile(claim));
    let what = |how: &str| format!("{} and {} {how} on {target}", names.0, names.1);
    let pair = (target, target);
    let apart = context.each(pair, &what("with independent arrivals"), |ladder, _| {
        controls.independent(ladder, names, q)
    });
    let both_orders = context
        .each(pair, &what("in both orders"), |ladder, _| controls.both_orders(ladder, names, q));
    Ok((apart?, both_orders?))
}

/// End of a sentence with the result of the ramp's own pairs at shares of the knee.
fn own_pairs(claim: &Slower, target: &str, context: &Context<'_>) -> String {
    let (slow, fast) = names(claim);
    let at_share = |share: &f64| {
        let ratio = context.each((target, target), "it", |ladder: &Ladder<'_>, _| {
            let rate = share * ladder.last_passing()?.rate();
            let time = |name: &str| {
                ladder.at_rate(rate, |stage: &StageResult<'_>| {
                    stage.service_of(name, quantile(claim))
                })
            };
            Some(time(slow)? / time(fast)?)
        });
        let ratio = show::ratio(ratio.ok()?.center);
        Some(format!("{ratio} at {} of the knee", show::percent(*share)))
    };
    let all: Vec<String> = claim.shares.iter().filter_map(at_share).collect();
    if all.is_empty() {
        return String::new();
    }
    format!("; in the ramp's pairs, whose order is always the same, {}", all.join(", "))
}

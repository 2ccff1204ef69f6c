//! Whether targets differ less, or more, at one operation than at others.

use model::Load;
use model::study::claims::Spread;

use super::context::{Context, Kind};
use super::judged::{Judged, cannot_be_decided, not_run};
use super::rates::RatioOfRates;
use crate::show;
use crate::view::ClaimVerdict;

/// The direction of a claim on a spread.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Way {
    Narrowest,
    Widest,
}

/// A claim on the spread of an operation against those of others.
pub(super) struct BySpread<'a>(pub(super) &'a Spread, pub(super) Way);

impl Kind for BySpread<'_> {
    fn expected(&self) -> String {
        let Self(Spread { operation, than, clients, among }, way) = self;
        let load = Load::closed(*clients);
        let to_one = if *way == Way::Narrowest { "nearer to 1" } else { "farther from 1" };
        let of =
            if among.is_empty() { String::new() } else { format!(" of {}", among.join(" and ")) };
        let than = than.join(" and ");
        format!("fastest / slowest{of} {to_one} at {operation} than at {than} ({load})")
    }

    fn judge(&self, context: &Context<'_>) -> Result<Judged, Judged> {
        let Self(claim, way) = self;
        let (own, pair) = spread(&claim.operation, claim, context)?;
        let ratio = |ratio: &RatioOfRates| show::ratio(ratio.value.center);
        let mut note = format!("{}: {} ({pair})", claim.operation, ratio(&own));
        let (mut all_beyond, mut one_before, mut doubt) = (true, false, own.doubt());
        for other in &claim.than {
            let (theirs, pair) = spread(other, claim, context)?;
            note += &format!("; {other}: {} ({pair})", ratio(&theirs));
            let (less, more) = match way {
                Way::Narrowest => (&own, &theirs),
                Way::Widest => (&theirs, &own),
            };
            all_beyond &= is_below(less, more);
            one_before |= is_below(more, less);
            doubt = doubt.or(theirs.doubt());
        }
        let (verdict, words) = match (all_beyond, one_before) {
            (true, _) => (ClaimVerdict::Confirmed, "holds".into()),
            (_, true) => (ClaimVerdict::Refuted, "does not hold".into()),
            _ => (ClaimVerdict::Undecided, cannot_be_decided(doubt)),
        };
        // Operations of one sequence are not independent, and nothing controls for that.
        if context.row_of(&claim.operation) != claim.operation {
            note += "; in a list, an operation's time depends on the operation before it";
        }
        Ok(Judged(verdict, Some(own.value), format!("{words}; fastest against slowest at {note}")))
    }
}

fn is_below(a: &RatioOfRates, b: &RatioOfRates) -> bool {
    a.ends().zip(b.ends()).is_some_and(|((_, hi), (lo, _))| hi < lo)
}

/// The rate of the fastest target divided by that of the slowest, with their names.
fn spread(
    operation: &str,
    claim: &Spread,
    context: &Context<'_>,
) -> Result<(RatioOfRates, String), Judged> {
    let targets = context.targets(&claim.among);
    let mut widest: Option<(RatioOfRates, String)> = None;
    for a in &targets {
        for b in targets.iter().filter(|b| *b != a) {
            let ratio = context.ratio_of_rates(operation, claim.clients, a, b)?;
            let wider = |(w, _): &(RatioOfRates, _)| w.value.center < ratio.value.center;
            if widest.as_ref().is_none_or(wider) {
                widest = Some((ratio, format!("{a} against {b}")));
            }
        }
    }
    widest.ok_or_else(|| not_run("fewer than two targets were measured".into()))
}

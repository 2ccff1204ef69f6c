//! A ratio of latencies that grows with the load.

use model::study::claims::Diverges;

use super::context::{Context, Kind};
use super::judged::{Judged, by_range};
use crate::ramp::{Ladder, StageResult};
use crate::show;

impl Kind for Diverges {
    fn expected(&self) -> String {
        let Self { a, b, low, high, min, operation } = self;
        let of = operation.as_ref().map_or_else(String::new, |name| format!(" of {name}"));
        format!(
            "p99{of} of {a} / {b} at {} of what {a} reached at least {} that at {}",
            show::percent(*high),
            show::ratio(*min),
            show::percent(*low)
        )
    }

    fn judge(&self, context: &Context<'_>) -> Result<Judged, Judged> {
        let Self { a, b, low, high, min, operation } = self;
        let p99 = |ladder: &Ladder<'_>, rate| {
            ladder.at_any_rate(rate, |s: &StageResult<'_>| {
                s.quantile_of_any(operation.as_deref(), 0.99)
            })
        };
        let at = |share: f64| {
            let what = format!("{} of what {a} reached, on both,", show::percent(share));
            context.each((a, b), &what, |one, two| {
                let rate = share * one.reached();
                Some(p99(one, rate)? / p99(two, rate)?)
            })
        };
        let change = context.each((a, b), "both loads on both targets", |one, two| {
            let ratio = |share: f64| {
                let rate = share * one.reached();
                Some(p99(one, rate)? / p99(two, rate)?)
            };
            Some(ratio(*high)? / ratio(*low)?)
        })?;
        let words =
            |share: f64| at(share).map_or_else(|_| String::new(), |v| show::ratio(v.center));
        let note = format!(
            "p99 of {a} is {} that of {b} at {} of what {a} reached, and {} at {}",
            words(*low),
            show::percent(*low),
            words(*high),
            show::percent(*high)
        );
        Ok(by_range(change, (*min, f64::INFINITY), &note))
    }
}

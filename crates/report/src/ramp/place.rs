//! Separates the effect of an operation's position in a pair from that of the operation. The first
//! of a pair meets an idle server, the second one that has just answered. So if a set always comes
//! first and a get second, their latencies mix both effects.
//!
//! Three phases of each trial separate them: pairs in the ramp's order, pairs in the reverse order,
//! and independent arrivals. With operations a and b and positions 1 and 2:
//!
//! - position: √(a₁/a₂ · b₁/b₂), first to second, averaged over both operations;
//! - operation: √(a₁/b₂ · a₂/b₁), in which the position cancels out.

use model::{Cell, Counts, Point, Workload};
use stats::Doubt;
use stats::knee::ERROR_SHARE;
use std::collections::BTreeMap;

use super::ladder::{Ladder, Ramp, service_time};
use crate::blocks::{over_blocks, ratio_over_blocks};
use crate::recorded::Recorded;
use crate::show::{self, classes, grouped};
use crate::view::{PlaceView, Value};

/// Maximum share of misses in a control phase, since a miss takes a different time from a hit.
const MISS_SHARE_MAX: f64 = 0.01;
/// Reported percentiles.
const QUANTILES: [(&str, f64); 2] = [("p50", 0.5), ("p99", 0.99)];

/// Reads a value of a ladder.
type Read<'a> = &'a dyn Fn(&Ladder<'_>) -> Option<f64>;

/// Position of an operation.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Place {
    /// First of a pair.
    First,
    /// Second of a pair.
    Second,
    /// Independent arrival.
    Independent,
}

impl Place {
    const ALL: [Self; 3] = [Self::First, Self::Second, Self::Independent];

    fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Second => "second",
            Self::Independent => "apart",
        }
    }
}

/// The control phases of a cell, by name.
pub(crate) struct Controls<'a> {
    /// The operations of a pair, in the ramp's order.
    pub(crate) operations: [&'a str; 2],
    pair: &'a str,
    swapped: &'a str,
    independent: &'a str,
}

impl<'a> Controls<'a> {
    /// The control phases of a cell; `None` if one of the three is missing.
    pub(crate) fn of(cell: &'a Cell) -> Option<Self> {
        let Workload::Kv(kv) = &cell.workload else { return None };
        let [first, second] = &kv.operations[..] else { return None };
        let phase = |sequence: &[&str]| {
            let matches = |p: &&model::Phase| {
                p.control.as_ref().is_some_and(|control| control.sequence == sequence)
            };
            kv.phases.iter().find(matches).map(|p| p.name.as_str())
        };
        let (first, second) = (first.name.as_str(), second.name.as_str());
        Some(Self {
            operations: [first, second],
            pair: phase(&[first, second])?,
            swapped: phase(&[second, first])?,
            independent: phase(&[])?,
        })
    }

    /// A percentile, or without one the mean, of an operation's service time at a position,
    /// nanoseconds; `None` if unknown.
    fn time(
        &self,
        ladder: &Ladder<'_>,
        operation: &str,
        place: Place,
        q: Option<f64>,
    ) -> Option<f64> {
        let comes_first = operation == self.operations[0];
        let phase = match (place, comes_first) {
            (Place::Independent, _) => self.independent,
            (Place::First, true) | (Place::Second, false) => self.pair,
            (Place::First, false) | (Place::Second, true) => self.swapped,
        };
        let found = result(ladder, phase)?.operation(operation)?;
        service_time(found, q)
    }

    /// Ratio of one operation to another with independent arrivals.
    pub(crate) fn independent(
        &self,
        ladder: &Ladder<'_>,
        (a, b): (&str, &str),
        q: Option<f64>,
    ) -> Option<f64> {
        let time = |operation| self.time(ladder, operation, Place::Independent, q);
        Some(time(a)? / time(b)?)
    }

    /// Ratio of one operation to another over pairs in both orders, in which positions cancel out.
    pub(crate) fn both_orders(
        &self,
        ladder: &Ladder<'_>,
        (a, b): (&str, &str),
        q: Option<f64>,
    ) -> Option<f64> {
        let time = |operation, place| self.time(ladder, operation, place, q);
        let (first, second) = (Place::First, Place::Second);
        let square = time(a, first)? / time(b, second)? * (time(a, second)? / time(b, first)?);
        Some(square.sqrt())
    }

    /// Ratio of first to second position, over both operations.
    fn first_by_second(&self, ladder: &Ladder<'_>, q: Option<f64>) -> Option<f64> {
        let [a, b] = self.operations;
        let time = |operation, place| self.time(ladder, operation, place, q);
        let (first, second) = (Place::First, Place::Second);
        let square = time(a, first)? / time(a, second)? * (time(b, first)? / time(b, second)?);
        Some(square.sqrt())
    }

    /// Why the control phases are inconclusive; `None` if they are not.
    fn doubt(&self, ramp: &Ramp<'_>) -> Option<String> {
        let (mut counts, mut unsent) = (Counts::default(), 0);
        for ladder in ramp.whole() {
            for phase in [self.pair, self.swapped, self.independent] {
                let Some(found) = result(ladder, phase) else { continue };
                unsent += found.unsent;
                found.whole().into_iter().for_each(|whole| counts.merge(&whole.counts));
            }
        }
        let total = counts.total() + unsent;
        let share = |n: u64| n as f64 / total.max(1) as f64;
        if share(counts.error + unsent) > ERROR_SHARE {
            let failed = counts.error + unsent;
            let why = if counts.error > 0 { classes(&counts) } else { "never sent".into() };
            return Some(format!("{failed} of {total} operations failed ({why})"));
        }
        (share(counts.miss) > MISS_SHARE_MAX)
            .then(|| format!("{} of {total} operations found nothing", counts.miss))
    }
}

fn result<'a>(ladder: &Ladder<'a>, phase: &str) -> Option<&'a Point> {
    ladder.trial.point(phase)
}

impl Ramp<'_> {
    /// Result of the control phases; `None` unless all were measured.
    pub(super) fn place(&self, recorded: &Recorded) -> Option<PlaceView> {
        let controls = Controls::of(self.cell)?;
        let seed = recorded.header.plan.seed;
        let mut metrics = BTreeMap::new();
        let times = |read: Read<'_>| over_blocks(self.whole().filter_map(read), seed);
        let ratios = |read: Read<'_>| ratio_over_blocks(self.whole().filter_map(read), seed);
        let pair = |ladder: &Ladder<'_>| Some(result(ladder, controls.pair)?.whole()?.rate_per_s);
        let mut put = |name: String, value: Option<Value>| {
            metrics.extend(value.map(|value| (name, value)));
        };
        put("rate_per_s".into(), times(&pair).map(|(rate, _)| rate));
        let [a, b] = controls.operations;
        for (name, q) in QUANTILES {
            let q = Some(q);
            for operation in [a, b] {
                for place in Place::ALL {
                    let key = format!("{operation}.{}.ns_{name}", place.name());
                    let found = times(&|c| controls.time(c, operation, place, q));
                    put(key, found.map(|(time, _)| time));
                }
            }
            let first = ratios(&|c| controls.first_by_second(c, q));
            put(format!("first_by_second.ns_{name}"), first);
            let independent = ratios(&|c| controls.independent(c, (a, b), q));
            put(format!("{a}_by_{b}.apart.ns_{name}"), independent);
            let both = ratios(&|c| controls.both_orders(c, (a, b), q));
            put(format!("{a}_by_{b}.both_orders.ns_{name}"), both);
        }
        let is_known =
            |ladder: &&Ladder<'_>| controls.first_by_second(ladder, Some(0.99)).is_some();
        let blocks = self.whole().filter(is_known).count();
        let first_by_second = *metrics.get("first_by_second.ns_p99")?;
        let few = || Some(format!("it was measured in {}", Doubt::about(blocks)?));
        let doubt = controls.doubt(self).or_else(few);
        let mut view = PlaceView {
            operations: [a, b].map(String::from).to_vec(),
            blocks: blocks as u32,
            sentence: String::new(),
            doubt,
            metrics,
        };
        view.sentence = sentence(&self.cell.target, &view, first_by_second);
        Some(view)
    }
}

/// A sentence about the effects of position and operation.
fn sentence(target: &str, view: &PlaceView, first_by_second: Value) -> String {
    let ratio = |name: &str| {
        let value = |q: &str| view.metrics.get(&format!("{name}.ns_{q}"));
        let p99 = value("p99").map_or_else(|| "–".into(), show::ratio_value);
        let p50 = value("p50").map_or_else(|| "–".into(), |v| show::ratio(v.center));
        format!("{p99} (p99; p50 {p50})")
    };
    let rate = view.metrics.get("rate_per_s").map_or(0.0, |rate| rate.center);
    let found = format!(
        "at {}/s the first of a pair takes {} as long as the second",
        grouped(rate),
        ratio("first_by_second")
    );
    let effect = match (&view.doubt, first_by_second.interval()) {
        (Some(doubt), _) => format!("{found}, which is inconclusive: {doubt}"),
        (None, Some((lo, _))) if lo > 1.0 => format!(
            "{found}, for either operation: most likely server and CPU sleep when the first \
             arrives and are awake for the second"
        ),
        (None, Some((_, hi))) if hi < 1.0 => format!("{found}, for either operation"),
        (None, _) => format!("{found}, so the position has no significant effect"),
    };
    let [a, b] = &view.operations[..] else { return format!("{target}: {effect}") };
    let apart = ratio(&format!("{a}_by_{b}.apart"));
    let both = ratio(&format!("{a}_by_{b}.both_orders"));
    format!(
        "{target}: {effect}. A {a} takes {apart} as long as a {b} with independent arrivals, and \
         {both} over pairs of both orders"
    )
}

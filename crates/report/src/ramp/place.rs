//! What the place of an operation in a pair takes, apart from what the operation takes. The first
//! of a pair finds a server that had nothing to do, the second one that just answered; so the times
//! of a set that always comes first and of a get that always comes second tell both at once.
//!
//! Three phases of each trial tell them apart: pairs in the ramp's order, pairs in the other order,
//! and each operation by itself. With a and b as the operations, 1 and 2 as the places:
//!
//! - place: √(a₁/a₂ · b₁/b₂), what comes first by what comes second, whichever it is;
//! - operation: √(a₁/b₂ · a₂/b₁), in which each place stands above and below the line once.

use model::{Cell, Counts, Point, Workload};
use stats::Doubt;
use stats::knee::ERROR_SHARE;
use std::collections::BTreeMap;

use super::ladder::{Ladder, Ramp};
use crate::blocks::{over_blocks, ratio_over_blocks};
use crate::recorded::Recorded;
use crate::show::{self, classes, grouped};
use crate::view::{PlaceView, Value};

/// Share of a control's operations that may find nothing: a miss takes another time than a value.
const MISS_SHARE_MAX: f64 = 0.01;
/// Percentiles that are told.
const QUANTILES: [(&str, f64); 2] = [("p50", 0.5), ("p99", 0.99)];

/// What is read of a ladder.
type Read<'a> = &'a dyn Fn(&Ladder<'_>) -> Option<f64>;

/// Where an operation stands.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Place {
    /// First of a pair.
    First,
    /// Second of a pair.
    Second,
    /// It arrives by itself.
    Apart,
}

impl Place {
    const ALL: [Self; 3] = [Self::First, Self::Second, Self::Apart];

    fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Second => "second",
            Self::Apart => "apart",
        }
    }
}

/// The phases of a cell that tell places from operations, by name.
pub(crate) struct Controls<'a> {
    /// The operations of a pair, in the ramp's order.
    pub(crate) operations: [&'a str; 2],
    pair: &'a str,
    swapped: &'a str,
    apart: &'a str,
}

impl<'a> Controls<'a> {
    /// Those of a cell; `None` where one of the three is missing.
    pub(crate) fn of(cell: &'a Cell) -> Option<Self> {
        let Workload::Kv(kv) = &cell.workload else { return None };
        let [first, second] = &kv.operations[..] else { return None };
        let phase = |sequence: &[&str]| {
            let is_it = |p: &&model::Phase| {
                p.control.as_ref().is_some_and(|control| control.sequence == sequence)
            };
            kv.phases.iter().find(is_it).map(|p| p.name.as_str())
        };
        let (first, second) = (first.name.as_str(), second.name.as_str());
        Some(Self {
            operations: [first, second],
            pair: phase(&[first, second])?,
            swapped: phase(&[second, first])?,
            apart: phase(&[])?,
        })
    }

    /// A percentile of an operation's service time at a place, nanoseconds; `None` where it is not
    /// known.
    fn time(&self, ladder: &Ladder<'_>, operation: &str, place: Place, q: f64) -> Option<f64> {
        let comes_first = operation == self.operations[0];
        let phase = match (place, comes_first) {
            (Place::Apart, _) => self.apart,
            (Place::First, true) | (Place::Second, false) => self.pair,
            (Place::First, false) | (Place::Second, true) => self.swapped,
        };
        let found = result(ladder, phase)?.operation(operation)?;
        let ns = found.counts.times(&found.service, 0).known(q)? as f64;
        (ns > 0.0).then_some(ns)
    }

    /// One operation by another where each arrives by itself.
    pub(crate) fn apart(&self, ladder: &Ladder<'_>, (a, b): (&str, &str), q: f64) -> Option<f64> {
        let time = |operation| self.time(ladder, operation, Place::Apart, q);
        Some(time(a)? / time(b)?)
    }

    /// One operation by another in pairs of both orders together, in which places cancel out.
    pub(crate) fn both_orders(
        &self,
        ladder: &Ladder<'_>,
        (a, b): (&str, &str),
        q: f64,
    ) -> Option<f64> {
        let time = |operation, place| self.time(ladder, operation, place, q);
        let (first, second) = (Place::First, Place::Second);
        let square = time(a, first)? / time(b, second)? * (time(a, second)? / time(b, first)?);
        Some(square.sqrt())
    }

    /// What comes first by what comes second, whichever operation it is.
    fn first_by_second(&self, ladder: &Ladder<'_>, q: f64) -> Option<f64> {
        let [a, b] = self.operations;
        let time = |operation, place| self.time(ladder, operation, place, q);
        let (first, second) = (Place::First, Place::Second);
        let square = time(a, first)? / time(a, second)? * (time(b, first)? / time(b, second)?);
        Some(square.sqrt())
    }

    /// Why nothing follows from what was measured, where something was.
    fn doubt(&self, ramp: &Ramp<'_>) -> Option<String> {
        let (mut counts, mut unsent) = (Counts::default(), 0);
        for ladder in ramp.whole() {
            for phase in [self.pair, self.swapped, self.apart] {
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
    /// What its controls tell; `None` where it has none, or none came to an end.
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
            for operation in [a, b] {
                for place in Place::ALL {
                    let key = format!("{operation}.{}.ns_{name}", place.name());
                    let found = times(&|c| controls.time(c, operation, place, q));
                    put(key, found.map(|(time, _)| time));
                }
            }
            let first = ratios(&|c| controls.first_by_second(c, q));
            put(format!("first_by_second.ns_{name}"), first);
            let apart = ratios(&|c| controls.apart(c, (a, b), q));
            put(format!("{a}_by_{b}.apart.ns_{name}"), apart);
            let both = ratios(&|c| controls.both_orders(c, (a, b), q));
            put(format!("{a}_by_{b}.both_orders.ns_{name}"), both);
        }
        let told = |ladder: &&Ladder<'_>| controls.first_by_second(ladder, 0.99).is_some();
        let blocks = self.whole().filter(told).count();
        let first_by_second = *metrics.get("first_by_second.ns_p99")?;
        let few = || Some(format!("it rests on {}", Doubt::about(blocks)?));
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

/// What the place alone takes, and what is left of the operation.
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
    let told = match (&view.doubt, first_by_second.interval()) {
        (Some(doubt), _) => format!("{found}, which decides nothing: {doubt}"),
        (None, Some((lo, _))) if lo > 1.0 => format!(
            "{found}, whichever operation it is: most likely it finds server and CPU asleep, and \
             the second finds them awake"
        ),
        (None, Some((_, hi))) if hi < 1.0 => format!("{found}, whichever operation it is"),
        (None, _) => format!("{found}, so no effect of its place is shown"),
    };
    let [a, b] = &view.operations[..] else { return format!("{target}: {told}") };
    let apart = ratio(&format!("{a}_by_{b}.apart"));
    let both = ratio(&format!("{a}_by_{b}.both_orders"));
    format!(
        "{target}: {told}. A {a} takes {apart} as long as a {b} where each arrives by itself, and \
         {both} over pairs of both orders"
    )
}

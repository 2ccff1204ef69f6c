//! What a search comes to, in a sentence.

use model::{Blame, Point, Slo};
use stats::search::{Found, Purpose, Seen};
use std::collections::BTreeMap;

use super::limited::LimitedBy;
use super::sought::{Sought, Tried};
use crate::ending::unsealed;
use crate::show::{self, grouped};
use crate::view::Value;

impl Sought<'_> {
    fn limits(&self) -> String {
        let limits: Vec<String> = self.search.slos.iter().map(Slo::words).collect();
        limits.join(" and ")
    }

    /// The outcome's name, and the sentence that says it, with its cure where there is one.
    pub(super) fn sentence(
        &self,
        answer: Option<Value>,
        limited_by: Option<&LimitedBy>,
        costs: &BTreeMap<String, Value>,
    ) -> (&'static str, String) {
        let counted = self.counted();
        let Some(answer) = answer else {
            let Some(first) = counted.iter().find(|block| block.rate().is_none()) else {
                return self.ended_early("nothing is known of it", None);
            };
            let (outcome, text) = self.of_block(first);
            let all = counted.len();
            let alike = counted.iter().filter(|block| self.of_block(block).0 == outcome).count();
            if all == 1 {
                return (outcome, text);
            }
            return (outcome, format!("{text} (so in {alike} of {all} blocks)"));
        };
        let (target, limits) = (&self.cell.target, self.limits());
        let cpus = costs.get("server_cpus").map_or_else(String::new, |v| {
            format!(", its CPU at {} of one there", show::percent(v.center))
        });
        let blocks = match counted.len() {
            1 => String::new(),
            n => format!(" in {n} blocks"),
        };
        let Some(by) = limited_by else {
            let held = self.held().map_or_else(String::new, |(rate_per_s, held_s)| {
                format!(
                    "; {} held for {held_s:.0} s, stalls rarer than that are not covered",
                    per_s(rate_per_s as f64)
                )
            });
            let ends = show::bounds(&answer);
            let ends = ends
                .map_or(String::new(), |(lo, hi)| format!(" [{}, {}]", grouped(lo), grouped(hi)));
            let rate = per_s(answer.center);
            let text = format!("{target} sustains {rate}{ends} with {limits}{blocks}{cpus}{held}");
            return ("found", text);
        };
        let least = per_s(answer.lo.unwrap_or(answer.center));
        let text =
            format!("{target} sustains at least {least} with {limits}{blocks}{cpus}: {}", by.why);
        (by.outcome, text)
    }

    fn ended_early(&self, so_far: &str, block: Option<&Tried<'_>>) -> (&'static str, String) {
        let failure = block.and_then(|block| block.trial.failure.as_ref());
        let early = match (failure, &self.recorded.seal) {
            (Some(failure), _) => failure.to_string(),
            (None, Some(seal)) => seal.stopped_because.clone(),
            (None, None) => unsealed(self.recorded).into(),
        };
        let (target, limits) = (&self.cell.target, self.limits());
        let text = format!(
            "{target}: the search for the highest rate with {limits} ended early ({early}); so \
             far, {so_far}"
        );
        ("ended-early", text)
    }

    /// What one block came to by itself.
    pub(super) fn of_block(&self, block: &Tried<'_>) -> (&'static str, String) {
        let (target, limits) = (&self.cell.target, self.limits());
        let so_far = so_far(block);
        match block.found {
            None => self.ended_early(&so_far, Some(block)),
            Some(Found::Rate { center, .. }) => ("found", per_s(center)),
            Some(Found::Nothing) => {
                let clients = self.cell.load.clients;
                let why = block.points.first().and_then(|point| point.failure.as_ref());
                let why = why.map_or("see its probe".into(), ToString::to_string);
                let text = format!("{target} answered nothing that {clients} client(s) asked");
                ("nothing", format!("{text}: {why}"))
            }
            Some(Found::Missed(rate)) => self.missed(block, rate),
            Some(Found::NeverMissed(rate)) => (
                "never-missed",
                format!(
                    "{target} keeps {limits} even at {}, far beyond what its clients reached \
                     without waiting: they were the limit, so give it more --clients or --pipeline",
                    per_s(rate as f64)
                ),
            ),
            Some(Found::NotHeld(rate_per_s)) => (
                "not-held",
                format!(
                    "{target} kept {limits} in short probes, but long ones did not keep them even \
                     at {rate}: from time to time the store stalls (by work of its own, such as \
                     snapshots of Redis) or the machine does, so there is no rate to give; raise \
                     the limit, turn such work off, or measure on a quieter machine",
                    rate = per_s(rate_per_s as f64)
                ),
            ),
            Some(Found::Unsettled(lowest, highest)) => (
                "unsettled",
                format!(
                    "{target}: what it bears with {limits} changed while it was searched, between \
                     {} and {}: measure on a quieter machine, or with a longer --probe",
                    per_s(lowest as f64),
                    per_s(highest as f64)
                ),
            ),
            Some(Found::Broken) => (
                "broken",
                format!(
                    "{target} broke under probe after probe, so that the highest rate with \
                     {limits} is not known: see why they failed; until then, {so_far}"
                ),
            ),
        }
    }

    /// The same where even the lowest rate tried was too high.
    fn missed(&self, block: &Tried<'_>, rate_per_s: u64) -> (&'static str, String) {
        let (target, limits, rate) = (&self.cell.target, self.limits(), per_s(rate_per_s as f64));
        let at_rate = |(s, _): &(&Seen, &Point)| s.is_judged() && s.rate_per_s == rate_per_s;
        let by_store = |(_, p): (&Seen, &Point)| self.search.blame(p) != Some(Blame::Generator);
        if block.pairs().filter(at_rate).any(by_store) {
            let text = format!(
                "{target} does not keep {limits} even at {rate}, the lowest rate tried: raise the \
                 limit, or measure on a quieter machine"
            );
            return ("missed", text);
        }
        let text = format!(
            "whether {target} keeps {limits} is not known: even at {rate}, the lowest rate tried, \
             the generator itself was later than that; raise the limit, give the generator CPUs of \
             its own or more --threads, or measure on a quieter machine"
        );
        ("not-judged", text)
    }
}

/// What probes say as long as there is no answer.
fn so_far(block: &Tried<'_>) -> String {
    let (held, missed) = block.settings.known(&block.seen);
    let broke = block.judged().filter(|s| s.broke).map(|s| s.rate_per_s).min();
    let known = [
        held.map(|r| format!("{} held", per_s(r as f64))),
        missed.map(|r| format!("{} did not hold", per_s(r as f64))),
        broke.map(|r| format!("it broke at {}", per_s(r as f64))),
    ];
    let known: Vec<String> = known.into_iter().flatten().collect();
    if known.is_empty() { "nothing is known of it".into() } else { known.join(" and ") }
}

pub(super) fn purpose(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Peak => "peak",
        Purpose::Rest => "rest",
        Purpose::Bracket => "bracket",
        Purpose::Hold => "hold",
        Purpose::Confirm => "confirm",
    }
}

/// `123,000/s`.
pub(super) fn per_s(rate: f64) -> String {
    grouped(rate) + "/s"
}

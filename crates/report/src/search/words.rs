//! What a search comes to, in a sentence.

use model::{Blame, Point, Slo};
use stats::search::{Found, ProbeResult};
use std::collections::BTreeMap;

use super::limited::LimitedBy;
use super::sought::{Sought, Tried};
use crate::ending::unsealed;
use crate::show::{self, grouped};
use crate::view::{SearchOutcome, Value};

/// What is said where no probe tells anything.
const NOTHING_KNOWN: &str = "nothing is known of it";

impl Sought<'_> {
    /// What one block came to by itself.
    pub(super) fn of_block(&self, block: &Tried<'_>) -> SearchOutcome {
        match block.found {
            None => SearchOutcome::EndedEarly,
            Some(Found::Rate { .. }) => SearchOutcome::Found,
            Some(Found::Nothing) => SearchOutcome::Nothing,
            Some(Found::Missed(rate)) if !self.is_missed_by_store(block, rate) => {
                SearchOutcome::NotJudged
            }
            Some(Found::Missed(_)) => SearchOutcome::Missed,
            Some(Found::NeverMissed(_)) => SearchOutcome::NeverMissed,
            Some(Found::NotHeld(_)) => SearchOutcome::NotHeld,
            Some(Found::Unsettled(..)) => SearchOutcome::Unsettled,
            Some(Found::Broken) => SearchOutcome::Broken,
        }
    }

    /// True where a rate missed the limits in a probe whose generator was not late itself.
    fn is_missed_by_store(&self, block: &Tried<'_>, rate_per_s: u64) -> bool {
        let at_rate = |(s, _): &(&ProbeResult, &Point)| s.is_judged() && s.rate_per_s == rate_per_s;
        let by_store =
            |(_, p): (&ProbeResult, &Point)| self.search.blame(p) != Some(Blame::Generator);
        block.pairs().filter(at_rate).any(by_store)
    }

    /// What all blocks came to together, and the sentence that says it, with its cure where there
    /// is one. `answer` is the rate that they found.
    pub(super) fn together(
        &self,
        answer: Option<Value>,
        limited_by: Option<&LimitedBy>,
        costs: &BTreeMap<String, Value>,
    ) -> (SearchOutcome, String) {
        let counted = self.counted();
        if let Some(answer) = answer {
            let outcome = limited_by.map_or(SearchOutcome::Found, |by| by.outcome);
            return (outcome, self.sustains(answer, limited_by, costs));
        }
        let Some(first) = counted.iter().find(|block| block.rate().is_none()) else {
            return (SearchOutcome::EndedEarly, self.ended_early(NOTHING_KNOWN, None));
        };
        let (outcome, text) = (self.of_block(first), self.without_rate(first));
        let alike = counted.iter().filter(|block| self.of_block(block) == outcome).count();
        match counted.len() {
            1 => (outcome, text),
            all => (outcome, format!("{text} (so in {alike} of {all} blocks)")),
        }
    }

    /// The rate found, or the least that is known where something else was the limit.
    fn sustains(
        &self,
        answer: Value,
        limited_by: Option<&LimitedBy>,
        costs: &BTreeMap<String, Value>,
    ) -> String {
        let cpus = costs.get("server_cpus").map_or_else(String::new, |v| {
            format!(", using {} of one core", show::percent(v.center))
        });
        let blocks = match self.counted().len() {
            1 => String::new(),
            n => format!(" in {n} blocks"),
        };
        let (rate, behind) = if let Some(by) = limited_by {
            let least = per_s(answer.lo.unwrap_or(answer.center));
            (format!("at least {least}"), format!(": {}", by.why))
        } else {
            let ends = show::bounds(&answer).map_or_else(String::new, |(lo, hi)| {
                format!(" [{}, {}]", grouped(lo), grouped(hi))
            });
            let held = self.held().map_or_else(String::new, |held| {
                let (rate, seconds) = (per_s(held.rate_per_s as f64), held.seconds);
                let held = if held.is_sure {
                    format!("{rate} held for {seconds:.0} s")
                } else {
                    format!("{rate}, tried for {seconds:.0} s, holds but not for certain")
                };
                format!("; {held}, stalls rarer than that are not covered")
            });
            (per_s(answer.center) + &ends, held)
        };
        let (target, limits) = (&self.cell.target, self.limits());
        format!("{target} sustains {rate} with {limits}{blocks}{cpus}{behind}")
    }

    /// Why a block found no rate.
    fn without_rate(&self, block: &Tried<'_>) -> String {
        let (target, limits) = (&self.cell.target, self.limits());
        match block.found {
            None => self.ended_early(&so_far(block), Some(block)),
            Some(Found::Rate { center, .. }) => per_s(center),
            Some(Found::Nothing) => {
                let clients = self.cell.load.clients;
                let why = block.points.first().and_then(|point| point.failure.as_ref());
                let why = why.map_or("see its probe".into(), ToString::to_string);
                format!("{target} answered nothing that {clients} client(s) asked: {why}")
            }
            Some(Found::Missed(rate)) if self.is_missed_by_store(block, rate) => format!(
                "{target} does not keep {limits} even at {}, the lowest rate tried: raise the \
                 limit, or measure on a quieter machine",
                per_s(rate as f64)
            ),
            Some(Found::Missed(rate)) => format!(
                "whether {target} keeps {limits} is not known: even at {}, the lowest rate tried, \
                 the generator itself was later than that; raise the limit, give the generator \
                 CPUs of its own or more --threads, or measure on a quieter machine",
                per_s(rate as f64)
            ),
            Some(Found::NeverMissed(rate)) => format!(
                "{target} keeps {limits} even at {}, far beyond what its clients reached without \
                 waiting: they were the limit, so give it more --clients or --pipeline",
                per_s(rate as f64)
            ),
            Some(Found::NotHeld(rate)) => format!(
                "{target} kept {limits} in short probes, but long ones did not keep them even at \
                 {}: from time to time the store stalls (by work of its own, such as snapshots of \
                 Redis) or the machine does, so there is no rate to give; raise the limit, turn \
                 such work off, or measure on a quieter machine",
                per_s(rate as f64)
            ),
            Some(Found::Unsettled(lowest, highest)) => format!(
                "{target}: what it sustains with {limits} changed while it was searched, between \
                 {} and {}: measure on a quieter machine, or with a longer --probe",
                per_s(lowest as f64),
                per_s(highest as f64)
            ),
            Some(Found::Broken) => format!(
                "{target} broke under probe after probe, so that the highest rate with {limits} \
                 is not known: see why they failed; until then, {}",
                so_far(block)
            ),
        }
    }

    fn ended_early(&self, so_far: &str, block: Option<&Tried<'_>>) -> String {
        let failure = block.and_then(|block| block.trial.failure.as_ref());
        let early = match (failure, &self.recorded.seal) {
            (Some(failure), _) => failure.to_string(),
            (None, Some(seal)) => seal.stopped_because.clone(),
            (None, None) => unsealed(self.recorded).into(),
        };
        let (target, limits) = (&self.cell.target, self.limits());
        format!(
            "{target}: the search for the highest rate with {limits} ended early ({early}); so \
             far, {so_far}"
        )
    }

    fn limits(&self) -> String {
        self.search.slos.iter().map(Slo::words).collect::<Vec<_>>().join(" and ")
    }
}

/// What probes say as long as there is no answer.
fn so_far(block: &Tried<'_>) -> String {
    let (held, missed) = block.settings.known(&block.seen);
    let broke = block.judged().filter(|s| s.broke).map(|s| s.rate_per_s).min();
    // Where probes at a rate disagree, none of it is decided.
    let once = block.judged().filter(|s| !s.broke && block.settings.keeps_limits(s));
    let once = once.map(|s| s.rate_per_s).max().filter(|_| held.is_none());
    let known = [
        held.map(|r| format!("{} held", per_s(r as f64))),
        once.map(|r| format!("{} held in one probe or more", per_s(r as f64))),
        missed.map(|r| format!("{} did not hold", per_s(r as f64))),
        broke.map(|r| format!("it broke at {}", per_s(r as f64))),
    ];
    let known: Vec<String> = known.into_iter().flatten().collect();
    if known.is_empty() { NOTHING_KNOWN.into() } else { known.join(" and ") }
}

/// `123,000/s`.
pub(crate) fn per_s(rate: f64) -> String {
    grouped(rate) + "/s"
}

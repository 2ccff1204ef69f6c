//! The result of a search as a sentence.

use model::{Blame, Point, Slo};
use stats::search::{Found, ProbeResult};
use std::collections::BTreeMap;

use super::cell_search::{BlockSearch, CellSearch};
use super::limited::LimitedBy;
use crate::ending::unsealed;
use crate::show::{self, grouped};
use crate::view::{SearchOutcome, Value};

/// Text if no probe gives any information.
const NOTHING_KNOWN: &str = "its rate is unknown";

impl CellSearch<'_> {
    /// Outcome of one block.
    pub(super) fn of_block(&self, block: &BlockSearch<'_>) -> SearchOutcome {
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

    /// True if a rate exceeded the limits in a probe without a late generator.
    fn is_missed_by_store(&self, block: &BlockSearch<'_>, rate_per_s: u64) -> bool {
        let at_rate = |(s, _): &(&ProbeResult, &Point)| s.is_judged() && s.rate_per_s == rate_per_s;
        let by_store =
            |(_, p): (&ProbeResult, &Point)| self.search.blame(p) != Some(Blame::Generator);
        block.pairs().filter(at_rate).any(by_store)
    }

    /// Joint outcome of all blocks and its sentence, with a remedy if there is one. `answer` is the
    /// rate they found.
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
            all => (outcome, format!("{text} (in {alike} of {all} blocks)")),
        }
    }

    /// The rate found, or a lower bound if the store was not the limit.
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
            let held = self.hold_result().map_or_else(String::new, |held| {
                let (rate, seconds) = (per_s(held.rate_per_s as f64), held.seconds);
                if held.is_sure {
                    format!(
                        "; {rate} was sustained for {seconds:.0} s, which says nothing about rarer \
                         stalls"
                    )
                } else {
                    format!(
                        "; a longer run at {rate} ({seconds:.0} s) passed, but not with 95 % \
                         confidence"
                    )
                }
            });
            (per_s(answer.center) + &ends, held)
        };
        let (target, limits) = (&self.cell.target, self.limits());
        format!("{target} sustains {rate} with {limits}{blocks}{cpus}{behind}")
    }

    /// Why a block found no rate.
    fn without_rate(&self, block: &BlockSearch<'_>) -> String {
        let (target, limits) = (&self.cell.target, self.limits());
        match block.found {
            None => self.ended_early(&so_far(block), Some(block)),
            Some(Found::Rate { center, .. }) => per_s(center),
            Some(Found::Nothing) => {
                let clients = self.cell.load.clients;
                let why = block.points.first().and_then(|point| point.failure.as_ref());
                let why = why.map_or("see its probe".into(), ToString::to_string);
                format!("{target} answered none of the requests of {clients} client(s): {why}")
            }
            Some(Found::Missed(rate)) if self.is_missed_by_store(block, rate) => format!(
                "{target} does not keep {limits} even at {}, the lowest rate tried: raise the \
                 limit, or measure on a quieter machine",
                per_s(rate as f64)
            ),
            Some(Found::Missed(rate)) => format!(
                "whether {target} keeps {limits} is unknown: even at {}, the lowest rate tried, \
                 the generator itself was late; raise the limit, give the generator its own CPUs \
                 or more --threads, or measure on a quieter machine",
                per_s(rate as f64)
            ),
            Some(Found::NeverMissed(rate)) => format!(
                "{target} keeps {limits} even at {}, far beyond what its clients reached without \
                 waiting: they were the limit, so give it more --clients or --pipeline",
                per_s(rate as f64)
            ),
            Some(Found::NotHeld(rate)) => format!(
                "{target} kept {limits} in short probes, but long probes failed even at {}: the \
                 store stalls from time to time (for work of its own, such as snapshots of \
                 Redis), or the machine does, so no rate is sustained; raise the limit, turn \
                 such work off, or measure on a quieter machine",
                per_s(rate as f64)
            ),
            Some(Found::Unsettled(lowest, highest)) => format!(
                "{target}: the rate it sustains with {limits} changed during the search, between \
                 {} and {}: measure on a quieter machine, or with a longer --probe",
                per_s(lowest as f64),
                per_s(highest as f64)
            ),
            Some(Found::Broken) => format!(
                "{target} broke in probe after probe, so the highest rate with {limits} is \
                 unknown: see why they failed; until then, {}",
                so_far(block)
            ),
        }
    }

    fn ended_early(&self, so_far: &str, block: Option<&BlockSearch<'_>>) -> String {
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

/// Summary of the probes while there is no answer.
fn so_far(block: &BlockSearch<'_>) -> String {
    let (held, missed) = block.settings.known(&block.seen);
    let broke = block.judged().filter(|s| s.broke).map(|s| s.rate_per_s).min();
    // If probes at a rate disagree, the rate is undecided.
    let once = block.judged().filter(|s| !s.broke && block.settings.keeps_limits(s));
    let once = once.map(|s| s.rate_per_s).max().filter(|_| held.is_none());
    let known = [
        held.map(|r| format!("{} passed", per_s(r as f64))),
        once.map(|r| format!("{} passed in at least one probe", per_s(r as f64))),
        missed.map(|r| format!("{} failed", per_s(r as f64))),
        broke.map(|r| format!("it broke at {}", per_s(r as f64))),
    ];
    let known: Vec<String> = known.into_iter().flatten().collect();
    if known.is_empty() { NOTHING_KNOWN.into() } else { known.join(" and ") }
}

/// `123,000/s`.
pub(crate) fn per_s(rate: f64) -> String {
    grouped(rate) + "/s"
}

//! Searches for the highest rate within limits: the probes of a cell's trials to its answer.
//!
//! What a trial found follows from its probes by [`stats::search`], as it did in the run. Here is
//! what several blocks found together, and in `limited` the reasons why it may not be the store's
//! doing: clients that were all busy, or a generator that was late or near its own limit.

use model::{Blame, Point};
use stats::search::{Purpose, Seen};
use stats::tail::{Judgement, Tail};

use crate::findings::Findings;
use crate::footnotes::pinning;
use crate::limits::{BLAMED_MAX, CONTRADICTED_MAX, WIDTH_MAX};
use crate::notes::Notes;
use crate::recorded::Recorded;
use crate::view::{ProbeView, SearchBlock, SearchView, Time};

mod against;
mod cost;
mod limited;
mod sought;
mod words;

use sought::{Sought, Tried};
use words::per_s;

pub(crate) use against::comparisons;

/// Why a probe missed whose last answers came late.
pub(crate) const FELL_BEHIND: &str = "queue grew";
/// What may have made a probe miss.
pub(crate) const OTHERS_HAD_CPUS: &str = "others had CPUs";
/// Why another rest follows one.
pub(crate) const STILL_SLOW: &str = "still slow";

/// All searches with what they come to, each held against the rules; those of targets that could
/// not be measured are left out.
pub(crate) fn judged<'a>(
    recorded: &'a Recorded,
    findings: &mut Findings,
    notes: &mut Notes,
) -> (Vec<Sought<'a>>, Vec<SearchView>) {
    let cells = recorded.header.plan.cells.iter();
    let cells = cells.filter(|cell| recorded.unavailable(&cell.target).is_none());
    let sought: Vec<Sought<'_>> = cells.filter_map(|cell| Sought::of(recorded, cell)).collect();
    let views = sought.iter().map(|one| one.judge(findings, notes)).collect();
    if !sought.is_empty() {
        pinning(&recorded.header, notes);
    }
    (sought, views)
}

impl Sought<'_> {
    /// What was found, and whether it may be used.
    fn judge(&self, findings: &mut Findings, notes: &mut Notes) -> SearchView {
        let (counted, answer) = (self.counted(), self.rate());
        let limited_by = answer.and_then(|v| self.limited_by(v.center, findings, notes));
        let costs = answer.map(|_| self.costs()).unwrap_or_default();
        let (outcome, sentence) = self.sentence(answer, limited_by.as_ref(), &costs);
        if outcome != "found" {
            findings.invalid.push(sentence.clone());
        }
        self.check(findings, notes);
        let all = || self.blocks.iter().flat_map(|block| &block.seen);
        let answered = all().map(|s| s.answered_per_s).filter(|r| *r > 0.0);
        let known: Vec<_> = counted.iter().map(|b| b.settings.known(&b.seen)).collect();
        SearchView {
            workload: self.cell.workload.profile().into(),
            operation: self.cell.workload.phases().first().map_or("", |p| &p.name).into(),
            target: self.cell.target.clone(),
            load: self.cell.load.clone(),
            limits: self.search.slos.iter().map(ToString::to_string).collect(),
            outcome: outcome.into(),
            sentence,
            answer,
            blocks: counted.iter().filter(|b| b.found.is_some()).count() as u32,
            peak_per_s: answered.reduce(f64::max),
            held_per_s: known.iter().filter_map(|(held, _)| *held).max(),
            missed_per_s: known.iter().filter_map(|(_, missed)| *missed).min(),
            held_s: answer.and_then(|_| self.held()).map(|(_, held_s)| held_s),
            costs,
            by_block: self.blocks.iter().map(|block| self.block(block)).collect(),
            tried: all().count() as u32,
            rests: all().filter(|s| s.purpose == Purpose::Rest).count() as u32,
            probes: self.blocks.iter().flat_map(|block| self.probes(block)).collect(),
        }
    }

    fn block(&self, tried: &Tried<'_>) -> SearchBlock {
        SearchBlock {
            block: tried.trial.block,
            outcome: self.of_block(tried).0.into(),
            answer: tried.rate(),
        }
    }

    /// Probes that contradict each other, and those who may be to blame for what they missed.
    fn check(&self, findings: &mut Findings, notes: &mut Notes) {
        let place = self.place();
        let contradicted = self.blocks.iter().map(|b| b.settings.contradictions(&b.seen));
        let (against, probes) = contradicted.fold((0, 0), |(a, n), (b, m)| (a + b, n + m));
        if against as f64 > CONTRADICTED_MAX * probes as f64 {
            let sentence = format!(
                "{place}{against} of {probes} probes surely had more requests beyond a limit than \
                 may be, at rates no higher than one that held: store or machine changed \
                 meanwhile, measure on a quieter machine or with a longer --probe"
            );
            findings.not_steady("store or machine changed while they were searched", sentence);
        }
        self.check_blame(findings, notes);
        self.check_broken(findings, notes);
        if self.blocks.iter().any(|block| block.brackets() > 1) {
            notes.add(format!(
                "{place}the search began anew, because what it found first did not agree with \
                 what followed: rates of both are among its probes"
            ));
        }
        let rates = self.blocks.iter().filter_map(|block| block.rate()?.interval());
        if let Some((lo, hi)) = rates.into_iter().find(|(lo, hi)| *hi > lo * WIDTH_MAX) {
            let sentence = format!(
                "{place}the interval reaches from {} to {}, probes disagree by more than half: \
                 measure on a quieter machine, or with more --rounds and a longer --probe",
                per_s(lo),
                per_s(hi)
            );
            findings.not_steady("probes of the search disagree", sentence);
        }
    }

    /// Probes that broke. At rates up to the upper end of the answer that is a failed trial like
    /// any other, above it is where the store breaks.
    fn check_broken(&self, findings: &mut Findings, notes: &mut Notes) {
        let (mut above, mut within) = (Vec::new(), Vec::new());
        for block in &self.blocks {
            let Some((_, hi)) = block.rate().and_then(|rate| rate.interval()) else { continue };
            for (seen, point) in block.pairs().filter(|(s, _)| s.broke) {
                match seen.purpose {
                    Purpose::Peak => {}
                    _ if seen.rate_per_s as f64 > hi.ceil() => above.push((seen, point)),
                    _ => within.push((seen, point)),
                }
            }
        }
        let all: usize = self.blocks.iter().map(|block| block.seen.len()).sum();
        let place = self.place();
        let lowest = |broken: &[(&Seen, &Point)]| {
            let (seen, point) = broken.iter().min_by_key(|(s, _)| s.rate_per_s)?;
            let why = point.failure.as_ref().map(ToString::to_string);
            let why = why.unwrap_or_else(|| "nothing was answered".into());
            let (count, rate) = (broken.len(), per_s(seen.rate_per_s as f64));
            Some((
                format!("{place}{count} of {all} probes failed"),
                format!("the lowest at {rate}: {why}"),
            ))
        };
        if let Some((count, first)) = lowest(&within) {
            findings.invalid.push(format!("{count} at rates no higher than the answer, {first}"));
        }
        if let Some((count, first)) = lowest(&above) {
            notes.add(format!("{count} at rates above the answer, {first}"));
        }
    }

    /// Probes that missed a limit for which others or the generator may be to blame.
    fn check_blame(&self, findings: &mut Findings, notes: &mut Notes) {
        let of_block = |block: &Tried<'_>| {
            let missed = block.pairs().filter(|(s, _)| s.is_judged() && !s.broke);
            let missed = missed.filter(|(s, _)| !block.settings.keeps_limits(s));
            missed.map(|(_, point)| self.search.blame(point)).collect::<Vec<_>>()
        };
        let blamed: Vec<Option<Blame>> = self.blocks.iter().flat_map(of_block).collect();
        let (all, place) = (blamed.len(), self.place());
        let count = |blame| blamed.iter().filter(|b| **b == Some(blame)).count();
        let (others, generator) = (count(Blame::Others), count(Blame::Generator));
        if generator as f64 > BLAMED_MAX * all as f64 {
            findings.invalid.push(format!(
                "{place}in {generator} of {all} probes that missed a limit the generator itself \
                 sent more requests late than may be beyond it, although a client was free: give \
                 it CPUs of its own or more --threads, or measure on a quieter machine"
            ));
        }
        let text = format!(
            "{place}in {others} of {all} probes that missed a limit others had the CPUs of \
             generator or server for longer than requests may be beyond it"
        );
        if others as f64 > BLAMED_MAX * all as f64 {
            let cure = "stop what else runs there, or measure on a quieter machine";
            let words = format!("{text}, so the store may bear more: {cure}");
            findings.not_steady("others took the CPUs", words);
        } else if others > 0 {
            notes.add(text + "; they count like any other");
        }
    }

    fn probes(&self, block: &Tried<'_>) -> Vec<ProbeView> {
        let rest = |s: &&(&Seen, &Point)| s.0.purpose != Purpose::Rest || !s.0.at_rest;
        let numbered = block.pairs().enumerate().filter(|(_, pair)| rest(&pair));
        numbered.map(|(i, (seen, point))| self.probe(block, i, seen, point)).collect()
    }

    fn probe(&self, block: &Tried<'_>, index: usize, seen: &Seen, point: &Point) -> ProbeView {
        let whole = point.whole();
        let verdict = match block.settings.judge(seen) {
            _ if seen.broke => "broke",
            _ if !seen.is_judged() => "",
            Judgement::Pass => "holds",
            Judgement::Fail => "missed",
            Judgement::Undecided => "undecided",
        };
        let failed = point.failure.as_ref().map(ToString::to_string);
        let reason = failed.or_else(|| {
            let words = match seen.purpose {
                _ if seen.fell_behind => FELL_BEHIND,
                Purpose::Rest => STILL_SLOW,
                _ if !seen.is_judged() || block.settings.keeps_limits(seen) => return None,
                _ => match self.search.blame(point)? {
                    Blame::Others => OTHERS_HAD_CPUS,
                    Blame::Generator => "generator late",
                },
            };
            Some(words.into())
        });
        let timeout_ns = self.recorded.header.plan.timeout_ns;
        let times = whole.map(|o| o.counts.times(&o.response, timeout_ns));
        let quantile = |q| times.as_ref()?.quantile(q).filter(|time| *time != Time::Of(0));
        let share =
            |o: &model::OperationResult| o.counts.error as f64 / o.counts.total().max(1) as f64;
        ProbeView {
            block: block.trial.block,
            number: index as u32 + 1,
            purpose: words::purpose(seen.purpose).into(),
            rate_per_s: (seen.rate_per_s > 0).then_some(seen.rate_per_s),
            length_s: seen.length_ns as f64 / 1e9,
            answered_per_s: seen.answered_per_s,
            response_ns_p50: quantile(0.5),
            response_ns_p99: quantile(0.99),
            error_share: whole.map(share),
            taken_share: point.disturbance.share_of(point.length_ns),
            over_shares: seen.batches.iter().map(|b| Tail::of([&b[..]]).share()).collect(),
            verdict: verdict.into(),
            reason,
        }
    }
}

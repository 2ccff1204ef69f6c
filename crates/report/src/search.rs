//! A search for the highest rate within limits: its record to its answer.
//!
//! What was found follows from the probes by [`stats::search`], as it did in the run. Here are the
//! reasons why it may not be the store's doing: clients that were all busy, or a generator that was
//! late or near its own limit.

use model::{Blame, Cell, Plan, Point, Search, Trial};
use stats::search::{Found, Next, Purpose, Seen, Settings};
use stats::tail::{Judgement, Tail};
use std::collections::BTreeMap;

use crate::ending::unsealed;
use crate::findings::Findings;
use crate::limits::{BLAMED_MAX, CONTRADICTED_MAX, WIDTH_MAX};
use crate::notes::Notes;
use crate::recorded::Recorded;
use crate::series::MeasuredPoint;
use crate::show::{self, grouped};
use crate::view::{ProbeView, SearchView, Time, Value};

mod cost;
mod limited;

/// Why a probe missed whose last answers came late.
pub(crate) const FELL_BEHIND: &str = "queue grew";
/// What may have made a probe miss.
pub(crate) const OTHERS_HAD_CPUS: &str = "others had CPUs";
/// Why another rest follows one.
pub(crate) const STILL_SLOW: &str = "still slow";

/// The record as one of cells that are each measured at a rate: what results are made of. Rests
/// are left out.
pub(crate) fn by_rate(recorded: &Recorded, search: &Search) -> Recorded {
    let mut by_rate = recorded.clone();
    let plan = &mut by_rate.header.plan;
    let cells = std::mem::take(&mut plan.cells);
    by_rate.trials.clear();
    by_rate.samples.clear();
    let mut repeated: BTreeMap<String, u32> = BTreeMap::new();
    for trial in &recorded.trials {
        let cell = cells.iter().find(|c| c.id == trial.cell);
        let (Some(cell), Some(step)) = (cell, trial.probe) else { continue };
        if step.purpose == Purpose::Rest {
            continue;
        }
        let id = Search::cell_id(&cell.id, step);
        let block = repeated.entry(id.clone()).or_default();
        let samples = recorded.samples_of(trial);
        if !samples.is_empty() {
            by_rate.samples.insert((*block, id.clone()), samples.to_vec());
        }
        by_rate.trials.push(Trial { cell: id.clone(), block: *block, ..trial.clone() });
        *block += 1;
        if !plan.cells.iter().any(|c| c.id == id) {
            let load = match step.purpose {
                Purpose::Peak => cell.load.clone(),
                _ => search.load(&cell.load, step.rate_per_s),
            };
            plan.cells.push(Cell { id, load, ..cell.clone() });
        }
    }
    plan.cells.sort_by_key(|c| rate_of(&c.load));
    by_rate
}

fn rate_of(load: &model::Load) -> u64 {
    match load {
        model::Load::Open { rate_per_s, .. } => *rate_per_s,
        model::Load::Closed { .. } | model::Load::Ramp { .. } => 0,
    }
}

/// A search as it is judged.
struct Judged<'a> {
    recorded: &'a Recorded,
    search: &'a Search,
    settings: Settings,
    /// One for each trial, in their order.
    seen: Vec<Seen>,
    trials: Vec<&'a Trial>,
    target: &'a str,
}

/// What held a rate down.
struct LimitedBy {
    outcome: &'static str,
    why: String,
}

/// What was found, and whether it may be used. `phases` are those of [`by_rate`].
pub(crate) fn search(
    recorded: &Recorded,
    search: &Search,
    phases: &[MeasuredPoint<'_>],
    findings: &mut Findings,
    notes: &mut Notes,
) -> SearchView {
    let plan: &Plan = &recorded.header.plan;
    let judged = Judged {
        recorded,
        search,
        settings: search.settings(plan.seed),
        seen: search.seen(&recorded.trials),
        trials: recorded.trials.iter().filter(|t| t.probe.is_some()).collect(),
        target: plan.targets.first().map_or("", |t| &t.name),
    };
    let (found, early) = match judged.settings.next(&judged.seen) {
        Next::Done(found) => (Some(found), None),
        Next::Probe(_) => (None, Some(judged.why_early())),
    };
    let limited_by = judged.limited_by(found, phases, findings, notes);
    let costs = match found {
        Some(Found::Rate { center, .. }) => judged.costs(center),
        _ => BTreeMap::new(),
    };
    let (outcome, sentence) = judged.sentence(found, early, (limited_by.as_ref(), &costs));
    if outcome != "found" {
        findings.invalid.push(sentence.clone());
    }
    judged.check(findings, notes);
    if let Some(Found::Rate { hi, .. }) = found {
        judged.check_broken(hi, findings, notes);
    }
    if let Some(Found::Rate { lo, hi, .. }) = found
        && hi > lo * WIDTH_MAX
    {
        findings.not_steady(
            "probes of the search disagree",
            format!(
                "the interval reaches from {} to {}, probes disagree by more than half: measure on \
                 a quieter machine, or with more --rounds and a longer --probe",
                per_s(lo),
                per_s(hi)
            ),
        );
    }
    let answer = match found {
        Some(Found::Rate { center, lo, hi }) => Some(Value::new(center, Some(lo), Some(hi))),
        _ => None,
    };
    let answered = judged.seen.iter().map(|s| s.answered_per_s).filter(|r| *r > 0.0);
    let (held_per_s, missed_per_s) = judged.settings.known(&judged.seen);
    SearchView {
        limits: search.slos.iter().map(ToString::to_string).collect(),
        outcome: outcome.into(),
        sentence,
        answer,
        peak_per_s: answered.reduce(f64::max),
        held_per_s,
        missed_per_s,
        held_s: answer.and_then(|_| judged.held()).map(|(_, held_s)| held_s),
        costs,
        rests: judged.seen.iter().filter(|s| s.purpose == Purpose::Rest).count() as u32,
        probes: judged.probes(),
    }
}

impl Judged<'_> {
    fn why_early(&self) -> String {
        match &self.recorded.seal {
            Some(seal) => seal.stopped_because.clone(),
            None => unsealed(self.recorded).into(),
        }
    }

    fn limits(&self) -> String {
        let limits: Vec<String> = self.search.slos.iter().map(model::Slo::words).collect();
        limits.join(" and ")
    }

    /// The outcome's name, and the sentence that says it, with its cure where there is one.
    fn sentence(
        &self,
        found: Option<Found>,
        early: Option<String>,
        (limited_by, costs): (Option<&LimitedBy>, &BTreeMap<String, Value>),
    ) -> (&'static str, String) {
        let (target, limits) = (self.target, self.limits());
        let so_far = self.so_far();
        let Some(found) = found else {
            let early = early.unwrap_or_default();
            let text = format!(
                "{target}: the search for the highest rate with {limits} ended early ({early}); \
                 so far, {so_far}"
            );
            return ("ended-early", text);
        };
        match found {
            Found::Rate { center, lo, hi } => {
                let (lo, hi) = (grouped(lo), grouped(hi));
                let cpus = costs.get("server_cpus").map_or_else(String::new, |v| {
                    format!(", its CPU at {} of one there", show::percent(v.center))
                });
                let sustained = format!("{} [{lo}, {hi}] with {limits}{cpus}", per_s(center));
                match limited_by {
                    None => {
                        let held = self.held().map_or_else(String::new, |(rate_per_s, held_s)| {
                            format!(
                                "; {} held for {held_s:.0} s, stalls rarer than that are not \
                                 covered",
                                per_s(rate_per_s as f64)
                            )
                        });
                        ("found", format!("{target} sustains {sustained}{held}"))
                    }
                    Some(by) => {
                        let least = format!("{lo}/s with {limits}{cpus}");
                        let text = format!("{target} sustains at least {least}: {}", by.why);
                        (by.outcome, text)
                    }
                }
            }
            Found::Nothing => {
                let asked = self.recorded.header.plan.cells.first();
                let clients = asked.map_or(0, |cell| cell.load.clients());
                let why = self.trials.first().and_then(|t| t.failure.as_ref());
                let why = why.map_or("see its probe".into(), ToString::to_string);
                let text = format!("{target} answered nothing that {clients} client(s) asked");
                ("nothing", format!("{text}: {why}"))
            }
            Found::Missed(rate) => self.missed(rate),
            Found::NeverMissed(rate) => (
                "never-missed",
                format!(
                    "{target} keeps {limits} even at {}, far beyond what its clients reached \
                     without waiting: they were the limit, so give it more --clients or --pipeline",
                    per_s(rate as f64)
                ),
            ),
            Found::Unsettled(..) | Found::NotHeld(_) | Found::Broken => self.no_rate(found),
        }
    }

    /// The same where probes do not agree, or break.
    fn no_rate(&self, found: Found) -> (&'static str, String) {
        let (target, limits) = (self.target, self.limits());
        match found {
            Found::NotHeld(rate_per_s) => (
                "not-held",
                format!(
                    "{target} kept {limits} in short probes, but long ones did not keep them even \
                     at {rate}: from time to time the store stalls (by work of its own, such as \
                     snapshots of Redis) or the machine does, so there is no rate to give; raise \
                     the limit, turn such work off, or measure on a quieter machine",
                    rate = per_s(rate_per_s as f64)
                ),
            ),
            Found::Unsettled(lowest, highest) => (
                "unsettled",
                format!(
                    "{target}: what it bears with {limits} changed while it was searched, between \
                     {} and {}: measure on a quieter machine, or with a longer --probe",
                    per_s(lowest as f64),
                    per_s(highest as f64)
                ),
            ),
            _ => (
                "broken",
                format!(
                    "{target} broke under probe after probe, so that the highest rate with \
                     {limits} is not known: see why they failed; until then, {}",
                    self.so_far()
                ),
            ),
        }
    }

    /// The same where even the lowest rate tried was too high.
    fn missed(&self, rate_per_s: u64) -> (&'static str, String) {
        let (target, limits, rate) = (self.target, self.limits(), per_s(rate_per_s as f64));
        let at_rate = |(s, _): &(&Seen, &Trial)| s.is_judged() && s.rate_per_s == rate_per_s;
        let by_store = |(_, t): (&Seen, &Trial)| self.search.blame(t) != Some(Blame::Generator);
        if self.pairs().filter(at_rate).any(by_store) {
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

    /// Probes that are there to be judged.
    fn judged(&self) -> impl Iterator<Item = &Seen> {
        self.seen.iter().filter(|s| s.is_judged())
    }

    /// What probes say as long as there is no answer.
    fn so_far(&self) -> String {
        let (held, missed) = self.settings.known(&self.seen);
        let broke = self.judged().filter(|s| s.broke).map(|s| s.rate_per_s).min();
        let known = [
            held.map(|r| format!("{} held", per_s(r as f64))),
            missed.map(|r| format!("{} did not hold", per_s(r as f64))),
            broke.map(|r| format!("it broke at {}", per_s(r as f64))),
        ];
        let known: Vec<String> = known.into_iter().flatten().collect();
        if known.is_empty() { "nothing is known of it".into() } else { known.join(" and ") }
    }

    fn pairs(&self) -> impl Iterator<Item = (&Seen, &Trial)> {
        self.seen.iter().zip(self.trials.iter().copied())
    }

    /// Probes that contradict each other, and those who may be to blame for what they missed.
    fn check(&self, findings: &mut Findings, notes: &mut Notes) {
        let (against, probes) = self.settings.contradictions(&self.seen);
        if against as f64 > CONTRADICTED_MAX * probes as f64 {
            let sentence = format!(
                "{against} of {probes} probes surely had more requests beyond a limit than may \
                 be, at rates no higher than one that held: store or machine changed meanwhile, \
                 measure on a quieter machine or with a longer --probe"
            );
            findings.not_steady("store or machine changed while they were searched", sentence);
        }
        self.check_blame(findings, notes);
        if self.brackets() > 1 {
            notes.add(
                "the search began anew, because what it found first did not agree with what \
                 followed: rates of both are among its probes",
            );
        }
    }

    /// The rate that was tried last in long runs, and for how many seconds in all; of an answer,
    /// what was held below it.
    fn held(&self) -> Option<(u64, f64)> {
        let holds = || self.seen.iter().filter(|s| s.purpose == Purpose::Hold);
        let rate_per_s = holds().next_back()?.rate_per_s;
        let own = holds().filter(|s| s.rate_per_s == rate_per_s);
        Some((rate_per_s, own.map(|s| s.length_ns as f64 / 1e9).sum()))
    }

    /// Probes that broke. At rates up to the upper end of the answer that is a failed trial like
    /// any other, above it is where the store breaks.
    fn check_broken(&self, hi: f64, findings: &mut Findings, notes: &mut Notes) {
        let broke = self.pairs().filter(|(s, _)| s.broke && s.purpose != Purpose::Peak);
        let (above, within): (Vec<_>, Vec<_>) =
            broke.partition(|(s, _)| s.rate_per_s as f64 > hi.ceil());
        let lowest = |broken: &[(&Seen, &Trial)]| {
            let (seen, trial) = broken.iter().min_by_key(|(s, _)| s.rate_per_s)?;
            let why = trial.failure.as_ref().map(ToString::to_string);
            let why = why.unwrap_or_else(|| "nothing was answered".into());
            let (count, all) = (broken.len(), self.trials.len());
            let rate = per_s(seen.rate_per_s as f64);
            Some((
                format!("{count} of {all} probes failed"),
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

    /// How often rates were bracketed.
    fn brackets(&self) -> usize {
        let judged: Vec<Purpose> = self.judged().map(|s| s.purpose).collect();
        let begins = |pair: &&[Purpose]| pair[0] == Purpose::Confirm && pair[1] == Purpose::Bracket;
        1 + judged.windows(2).filter(begins).count()
    }

    /// Probes that missed a limit for which others or the generator may be to blame.
    fn check_blame(&self, findings: &mut Findings, notes: &mut Notes) {
        let missed = self.pairs().filter(|(s, _)| s.is_judged() && !s.broke);
        let missed = missed.filter(|(s, _)| !self.settings.keeps_limits(s));
        let blamed: Vec<Option<Blame>> = missed.map(|(_, t)| self.search.blame(t)).collect();
        let all = blamed.len();
        let count = |blame| blamed.iter().filter(|b| **b == Some(blame)).count();
        let (others, generator) = (count(Blame::Others), count(Blame::Generator));
        if generator as f64 > BLAMED_MAX * all as f64 {
            findings.invalid.push(format!(
                "in {generator} of {all} probes that missed a limit the generator itself sent more \
                 requests late than may be beyond it, although a client was free: give it CPUs of \
                 its own or more --threads, or measure on a quieter machine"
            ));
        }
        let text = format!(
            "in {others} of {all} probes that missed a limit others had the CPUs of generator or \
             server for longer than requests may be beyond it"
        );
        if others as f64 > BLAMED_MAX * all as f64 {
            let cure = "stop what else runs there, or measure on a quieter machine";
            let words = format!("{text}, so the store may bear more: {cure}");
            findings.not_steady("others took the CPUs", words);
        } else if others > 0 {
            notes.add(text + "; they count like any other");
        }
    }

    fn probes(&self) -> Vec<ProbeView> {
        let rest = |s: &&(&Seen, &Trial)| s.0.purpose != Purpose::Rest || !s.0.at_rest;
        let numbered = self.pairs().enumerate().filter(|(_, pair)| rest(&pair));
        numbered.map(|(i, (seen, trial))| self.probe(i, seen, trial)).collect()
    }

    fn probe(&self, index: usize, seen: &Seen, trial: &Trial) -> ProbeView {
        let point = trial.points.first();
        let whole = point.and_then(Point::whole);
        let verdict = match self.settings.judge(seen) {
            _ if seen.broke => "broke",
            _ if !seen.is_judged() => "",
            Judgement::Pass => "holds",
            Judgement::Fail => "missed",
            Judgement::Undecided => "undecided",
        };
        let failed = trial.failure.as_ref().map(ToString::to_string);
        let reason = failed.or_else(|| {
            let words = match seen.purpose {
                _ if seen.fell_behind => FELL_BEHIND,
                Purpose::Rest => STILL_SLOW,
                _ if !seen.is_judged() || self.settings.keeps_limits(seen) => return None,
                _ => match self.search.blame(trial)? {
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
            number: index as u32 + 1,
            purpose: purpose(seen.purpose).into(),
            rate_per_s: (seen.rate_per_s > 0).then_some(seen.rate_per_s),
            length_s: seen.length_ns as f64 / 1e9,
            answered_per_s: seen.answered_per_s,
            response_ns_p50: quantile(0.5),
            response_ns_p99: quantile(0.99),
            error_share: whole.map(share),
            taken_share: point.map_or(0.0, |p| p.disturbance.share_of(p.length_ns)),
            over_shares: seen.batches.iter().map(|b| Tail::of([&b[..]]).share()).collect(),
            verdict: verdict.into(),
            reason,
        }
    }
}

fn purpose(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Peak => "peak",
        Purpose::Rest => "rest",
        Purpose::Bracket => "bracket",
        Purpose::Hold => "hold",
        Purpose::Confirm => "confirm",
    }
}

/// `123,000/s`.
fn per_s(rate: f64) -> String {
    grouped(rate) + "/s"
}

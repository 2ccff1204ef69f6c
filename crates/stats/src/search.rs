//! The search for the highest rate within limits: which probe is next, given all before.
//!
//! A pure function of what the probes gave, so that a record tells the same as the run did:
//!
//! 1. the peak: as fast as the clients can go, without regard for limits;
//! 2. a rest: a low rate, which tells how a store without load answers. Another one after each
//!    probe tells that it has come back to that, so that no probe spoils the next;
//! 3. the bracket: rates from below the peak, upwards or downwards until one holds and one fails,
//!    then bisection. A probe that cannot be decided is prolonged; one that stays so is close
//!    enough to the knee;
//! 4. confirmation: short runs at the knee, 5 % above and 5 % below, in rounds, each in random
//!    order. The answer is the rate at which the share of requests beyond the limit crosses what is
//!    allowed, on a straight line through the logarithms of rates and shares of all rounds (a
//!    queue's tail is exponential, so that its share's logarithm is nearly straight near the knee);
//!    its interval comes from resampling rounds and what
//!    the bracket knows of rates near by. Each round tries the rates around what the ones before
//!    say; where that is beyond all rates tried, or rounds alone all hold or all miss, it goes
//!    further with each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

mod knee;
mod told;

use self::knee::{Crossing, crossing};
use crate::random::SplitMix64;
use crate::student;
use crate::tail::{Batch, Judgement, Tail};

/// The first rate of the bracket, as a share of the peak.
const FIRST_SHARE: f64 = 0.7;
/// The rate of a rest, as a share of the peak.
const REST_SHARE: f64 = 0.1;
/// The lowest rate that is tried, as a share of the peak.
const FLOOR_SHARE: f64 = 0.02;
/// Requests of a rest, if it takes no longer than a probe, and how often its shortest length goes
/// into one.
const REST_REQUESTS: f64 = 20.0;
const RESTS_A_PROBE: u64 = 10;
/// Rests in a row after which the next probe does not wait any longer.
const RESTS_MAX: usize = 8;
/// Step upwards while nothing failed, and downwards while nothing passed.
const STEP_UP: f64 = 1.2;
const STEP_DOWN: f64 = 0.4;
/// Multiple of the peak beyond which no rate is tried.
const ABOVE_PEAK_MAX: f64 = 4.0;
/// Ratio of failing to passing rate at which bisection ends.
const BRACKET: f64 = 1.04;
/// Requests beyond the limit that a probe would see at the limit, which sets its length.
const OVER_WANTED: f64 = 4.0;
/// Longest first length of a probe, in those asked for.
const LONGEST: u64 = 30;
/// Share of what may be beyond a limit from which on an undecided probe is near the knee.
const NEAR: f64 = 1.0 / 3.0;
/// Length of all probes at a rate, in that of the first, after which it stays undecided.
const PROLONGED_MAX: u64 = 3;
/// Probes at a rate that the generator disturbed, after which it counts as failed.
const DOUBTED_MAX: usize = 3;
/// Probes of the bracket after which the search gives up.
const BRACKET_PROBES_MAX: usize = 60;
/// Probes in a row that broke, after which the search gives up.
const BROKEN_MAX: usize = 3;
/// Ratio of neighbouring rates of the confirmation.
const CONFIRMED: f64 = 1.05;
/// Rates that a round of the confirmation tries, each in a probe.
pub const A_ROUND: usize = 3;
/// Length of such a run, in that of a first probe.
const CONFIRM_LENGTHS: u64 = 2;
/// How far from the knee rates of the bracket count too, as a logarithm.
const KNOWN_WITHIN: f64 = 0.12;
/// Most steps by which a round's rates are moved at once.
const STRIDE_MAX: i32 = 8;
/// Rounds beyond those asked for, where the knee moves.
const ROUNDS_MORE: usize = 5;
/// Resamples of the interval.
const RESAMPLES: usize = 4_000;

/// What a probe is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// The highest rate of a closed load.
    Peak,
    /// A low rate: how the store answers without load.
    Rest,
    /// To find the knee roughly.
    Bracket,
    /// To be sure of it.
    Confirm,
}

/// What the search is to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Share of requests that may be beyond each limit, between 0 and 1; at least one limit.
    pub allowed: Vec<f64>,
    /// Shortest length of a probe, nanoseconds, above 0.
    pub probe_ns: u64,
    /// Rounds of the confirmation, at least 1.
    pub rounds: u32,
    /// Order of the confirmation, and resamples.
    pub seed: u64,
}

/// What a probe gave.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// What it was for.
    pub purpose: Purpose,
    /// Requests per second as planned; 0 for the peak.
    pub rate_per_s: u64,
    /// Requests answered per second.
    pub answered_per_s: f64,
    /// How long it was, nanoseconds.
    pub length_ns: u64,
    /// For each limit, what was due in each span of time; all spans are as long.
    pub batches: Vec<Vec<Batch>>,
    /// True where the store answered fewer than were due, so that a queue grew.
    pub fell_behind: bool,
    /// True where it broke: the server ended, or refused.
    pub broke: bool,
    /// True where the generator, not the store, was late.
    pub doubted: bool,
    /// Of a rest: true where the store answers as at the first one.
    pub at_rest: bool,
}

/// The next probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What it is for.
    pub purpose: Purpose,
    /// Requests per second; 0 for the peak, which has none.
    pub rate_per_s: u64,
    /// How long, nanoseconds.
    pub length_ns: u64,
}

/// How a search ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Found {
    /// The highest rate within the limits, requests per second, with its 95 % interval.
    Rate {
        /// The rate.
        center: f64,
        /// Its lower bound.
        lo: f64,
        /// Its upper bound.
        hi: f64,
    },
    /// Nothing was answered as fast as it could.
    Nothing,
    /// Even this rate is beyond a limit.
    Missed(u64),
    /// Even this rate, far above the peak, is within them.
    NeverMissed(u64),
    /// The knee moved whenever it was to be confirmed; the lowest and the highest rate tried.
    Unsettled(u64, u64),
    /// Probe after probe broke.
    Broken,
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// Another probe.
    Probe(Step),
    /// Nothing.
    Done(Found),
}

/// A judgement of several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Together {
    judgement: Judgement,
    /// Where it is undecided: which way it leans.
    leans_to_pass: bool,
    /// Where it is undecided: true when as many are beyond a limit as could be at the knee.
    is_near: bool,
}

/// What all probes at a rate say.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pooled {
    rate_per_s: u64,
    together: Together,
    /// Length of those that count, and of the first.
    length_ns: u64,
    first_ns: u64,
    doubted: usize,
}

impl Pooled {
    fn passes(&self) -> bool {
        match self.together.judgement {
            Judgement::Pass => true,
            Judgement::Fail => false,
            Judgement::Undecided => self.together.leans_to_pass,
        }
    }
}

impl Settings {
    /// What follows on the probes seen, in their order.
    pub fn next(&self, seen: &[Seen]) -> Next {
        let Some(first) = seen.first() else {
            return probe(Purpose::Peak, 0, self.probe_ns);
        };
        let peak_per_s = first.answered_per_s;
        if first.broke || peak_per_s < 1.0 {
            return Next::Done(Found::Nothing);
        }
        if seen.len() >= BROKEN_MAX && seen[seen.len() - BROKEN_MAX..].iter().all(|s| s.broke) {
            return Next::Done(Found::Broken);
        }
        let rest = share_of(peak_per_s, REST_SHARE);
        let rests = seen.iter().rev().take_while(|s| s.purpose == Purpose::Rest).count();
        let rested = rests > 0 && seen.last().is_some_and(|s| s.at_rest);
        if !rested && rests < RESTS_MAX {
            let length = (REST_REQUESTS / rest as f64 * 1e9) as u64;
            let length = length.clamp(self.probe_ns / RESTS_A_PROBE, self.probe_ns);
            return probe(Purpose::Rest, rest, length);
        }
        match self.bracket(seen, peak_per_s) {
            Bracketed::Probe(rate_per_s, length_ns) => {
                probe(Purpose::Bracket, rate_per_s, length_ns)
            }
            Bracketed::Knee(knee) => self.confirm(seen, knee),
            Bracketed::Done(found) => Next::Done(found),
        }
    }

    /// What runs at one rate say together.
    fn judge_all(&self, runs: &[&Seen]) -> Together {
        if runs.is_empty() || runs.iter().any(|s| s.fell_behind || s.broke) {
            return Together { judgement: Judgement::Fail, leans_to_pass: false, is_near: false };
        }
        let mut all = Together { judgement: Judgement::Pass, leans_to_pass: true, is_near: false };
        for (limit, allowed) in self.allowed.iter().enumerate() {
            let tail = Tail::of(runs.iter().map(|s| batches(s, limit)));
            let judgement = tail.judge(*allowed);
            all.leans_to_pass &= tail.share() <= *allowed;
            all.is_near |= judgement == Judgement::Undecided && tail.share() >= NEAR * allowed;
            all.judgement = match (all.judgement, judgement) {
                (Judgement::Fail, _) | (_, Judgement::Fail) => Judgement::Fail,
                (Judgement::Pass, Judgement::Pass) => Judgement::Pass,
                _ => Judgement::Undecided,
            };
        }
        all
    }

    /// By rate, ascending.
    fn pooled<'a>(&self, seen: impl Iterator<Item = &'a Seen>) -> Vec<Pooled> {
        let mut by_rate: BTreeMap<u64, Vec<&Seen>> = BTreeMap::new();
        seen.for_each(|s| by_rate.entry(s.rate_per_s).or_default().push(s));
        let pooled = by_rate.into_iter().map(|(rate_per_s, runs)| {
            let judged: Vec<&Seen> = runs.iter().copied().filter(|s| !s.doubted).collect();
            Pooled {
                rate_per_s,
                together: self.judge_all(&judged),
                length_ns: judged.iter().map(|s| s.length_ns).sum(),
                first_ns: runs.first().map_or(0, |s| s.length_ns),
                doubted: runs.len() - judged.len(),
            }
        });
        pooled.collect()
    }

    /// The first length of a probe at a rate.
    fn length_ns(&self, rate_per_s: u64) -> u64 {
        let rarest = self.allowed.iter().copied().fold(1.0, f64::min);
        let wanted = (OVER_WANTED / rarest / rate_per_s as f64 * 1e9) as u64;
        wanted.clamp(self.probe_ns, self.probe_ns.saturating_mul(LONGEST))
    }

    fn bracket(&self, seen: &[Seen], peak_per_s: f64) -> Bracketed {
        let probes = || seen.iter().filter(|s| s.purpose == Purpose::Bracket);
        let pooled = self.pooled(probes());
        let fresh = |rate: f64| {
            let rate_per_s = rate.round().max(1.0) as u64;
            Bracketed::Probe(rate_per_s, self.length_ns(rate_per_s))
        };
        let last = probes().next_back().map(|s| s.rate_per_s);
        let Some(latest) = last.and_then(|r| pooled.iter().find(|p| p.rate_per_s == r)) else {
            return fresh(peak_per_s * FIRST_SHARE);
        };
        if latest.length_ns == 0 && latest.doubted < DOUBTED_MAX {
            return Bracketed::Probe(latest.rate_per_s, latest.first_ns);
        }
        if latest.together.judgement == Judgement::Undecided {
            if latest.length_ns < PROLONGED_MAX * latest.first_ns {
                return Bracketed::Probe(latest.rate_per_s, latest.length_ns);
            }
            if latest.together.is_near {
                return Bracketed::Knee(latest.rate_per_s as f64);
            }
        }
        let floor = share_of(peak_per_s, FLOOR_SHARE);
        match ends(&pooled, |p| !p.passes(), Pooled::passes) {
            (Some(lo), Some(hi)) if probes().count() >= BRACKET_PROBES_MAX => {
                Bracketed::Done(Found::Unsettled(lo, hi))
            }
            (Some(lo), Some(hi)) => {
                let middle = (lo as f64 * hi as f64).sqrt();
                // Rates are whole: between neighbours there is none.
                if hi as f64 <= lo as f64 * BRACKET || hi - lo < 2 {
                    Bracketed::Knee(middle)
                } else {
                    fresh(middle)
                }
            }
            (None, Some(hi)) if hi <= floor => Bracketed::Done(Found::Missed(hi)),
            (None, Some(hi)) => fresh((hi as f64 * STEP_DOWN).max(floor as f64)),
            (Some(lo), None) if lo as f64 > peak_per_s * ABOVE_PEAK_MAX => {
                Bracketed::Done(Found::NeverMissed(lo))
            }
            (lo, None) => fresh((lo.unwrap_or(floor) as f64 * STEP_UP).max(floor as f64 + 1.0)),
        }
    }

    fn confirm(&self, seen: &[Seen], knee: f64) -> Next {
        let runs: Vec<&Seen> = seen.iter().filter(|s| s.purpose == Purpose::Confirm).collect();
        let rounds: Vec<&[&Seen]> = runs.chunks(A_ROUND).collect();
        let is_near = |s: &&Seen| (s.rate_per_s as f64 / knee).ln().abs() <= KNOWN_WITHIN;
        // A single queue that grew may have been a moment of the machine: rounds try that again.
        let counts = |s: &&Seen| s.purpose == Purpose::Bracket && !s.fell_behind && !s.broke;
        let others: Vec<&Seen> = seen.iter().filter(counts).filter(is_near).collect();
        let wanted = self.rounds.max(1) as usize;
        // Steps from the knee to the rate in the middle of the round, and how many it moves.
        let (mut middle, mut stride) = (0, 1);
        for done in 0..=wanted + ROUNDS_MORE {
            let begun = rounds.get(done).map_or(0, |round| round.len());
            if begun < A_ROUND {
                let step = middle + self.order(done)[begun];
                let rate_per_s = (knee * CONFIRMED.powi(step)).round().max(1.0) as u64;
                let length_ns = self.length_ns(rate_per_s).saturating_mul(CONFIRM_LENGTHS);
                return probe(Purpose::Confirm, rate_per_s, length_ns);
            }
            let alone = self.crossing(&rounds[..=done], &[]);
            // A bracket that a bad moment of the machine set too low, or too high, is not confirmed
            // by rounds that all hold, or all miss.
            let crossing = match alone {
                Crossing::At(_) => self.crossing(&rounds[..=done], &others),
                Crossing::Above(_) | Crossing::Below(_) => alone,
            };
            let moved = match crossing {
                Crossing::At(center) => {
                    let nearest = ((center / knee).ln() / CONFIRMED.ln()).round() as i32;
                    let is_tried = (nearest - middle).abs() <= 1;
                    if done + 1 >= wanted && is_tried {
                        return Next::Done(self.rate(&rounds[..=done], &others, center));
                    }
                    (middle, stride) = (nearest, 1);
                    continue;
                }
                Crossing::Above(_) => stride,
                Crossing::Below(_) => -stride,
            };
            (middle, stride) = (middle + moved, (stride * 2).min(STRIDE_MAX));
        }
        let rates = runs.iter().map(|s| s.rate_per_s);
        let (lowest, highest) = (rates.clone().min(), rates.max());
        Next::Done(Found::Unsettled(lowest.unwrap_or(0), highest.unwrap_or(0)))
    }

    /// In which order a round tries its rates, as steps from the one in the middle.
    fn order(&self, round: usize) -> [i32; A_ROUND] {
        let mut random = SplitMix64::new(self.seed ^ (round as u64).wrapping_mul(0x2545_f491));
        let mut order = [-1, 0, 1];
        order.swap(2, random.index(3));
        order.swap(1, random.index(2));
        order
    }

    /// Where all limits are met for the last time, by these rounds and what else is known there.
    fn crossing(&self, rounds: &[&[&Seen]], others: &[&Seen]) -> Crossing {
        let mut first = Crossing::Above(f64::INFINITY);
        for (limit, allowed) in self.allowed.iter().enumerate() {
            let mut counts: BTreeMap<u64, Batch> = BTreeMap::new();
            let all = rounds.iter().flat_map(|round| round.iter()).chain(others);
            for seen in all.filter(|s| !s.doubted) {
                let own = counts.entry(seen.rate_per_s).or_default();
                let (requests, over) = counted(seen, limit);
                own.requests += requests;
                own.over += over;
            }
            let crossing = crossing(&counts, *allowed);
            if crossing.rate() < first.rate() {
                first = crossing;
            }
        }
        match (first, answered(rounds)) {
            (Crossing::At(rate), Some(most)) if most < rate => Crossing::At(most),
            (first, _) => first,
        }
    }

    fn rate(&self, rounds: &[&[&Seen]], others: &[&Seen], center: f64) -> Found {
        let n = rounds.len();
        let mut random = SplitMix64::new(self.seed);
        let mut rates: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                let drawn: Vec<&[&Seen]> = (0..n).map(|_| rounds[random.index(n)]).collect();
                let beside = others.iter().map(|_| others[random.index(others.len())]);
                self.crossing(&drawn, &beside.collect::<Vec<_>>()).rate()
            })
            .filter(|rate| rate.is_finite())
            .collect();
        rates.sort_by(f64::total_cmp);
        // Of few rounds a plain percentile covers too little: see the module `interval`.
        let freedom = (n as f64 - 1.0).max(1.0);
        let widened = (n as f64 / freedom).sqrt() * student::critical(0.025, freedom);
        let at = (student::normal_tail(widened) * rates.len() as f64) as usize;
        let at = at.min(rates.len().saturating_sub(1) / 2);
        let end = |i: usize| rates.get(i).copied().unwrap_or(center);
        let (lo, hi) = (end(at), end(rates.len().saturating_sub(1 + at)));
        Found::Rate { center, lo: lo.min(center), hi: hi.max(center) }
    }
}

/// What a store answered a second where more was due than it could: no more lasts, also where a
/// limit is so long that a queue does not reach it within a probe. `None` where that never was.
fn answered(rounds: &[&[&Seen]]) -> Option<f64> {
    let behind = rounds.iter().flat_map(|round| round.iter());
    let behind = behind.filter(|s| s.fell_behind && !s.broke && !s.doubted);
    let (mut answers, mut seconds) = (0.0, 0.0);
    for seen in behind {
        let length_s = seen.length_ns as f64 / 1e9;
        (answers, seconds) = (answers + seen.answered_per_s * length_s, seconds + length_s);
    }
    (seconds > 0.0).then(|| answers / seconds)
}

enum Bracketed {
    Probe(u64, u64),
    Knee(f64),
    Done(Found),
}

fn probe(purpose: Purpose, rate_per_s: u64, length_ns: u64) -> Next {
    Next::Probe(Step { purpose, rate_per_s, length_ns })
}

fn share_of(peak_per_s: f64, share: f64) -> u64 {
    (peak_per_s * share).ceil().max(1.0) as u64
}

fn batches(seen: &Seen, limit: usize) -> &[Batch] {
    seen.batches.get(limit).map_or(&[], Vec::as_slice)
}

/// Requests of a run and those beyond a limit: all of them where it broke, or fell behind.
fn counted(seen: &Seen, limit: usize) -> (u64, u64) {
    let planned = seen.rate_per_s as f64 * seen.length_ns as f64 / 1e9;
    let tail = Tail::of([batches(seen, limit)]);
    let requests = tail.requests.max(if seen.broke { planned as u64 } else { 0 });
    (requests, if seen.broke || seen.fell_behind { requests } else { tail.over })
}

/// The highest rate that passes below the lowest that fails, and that one; `None` where there is
/// none.
fn ends(
    pooled: &[Pooled],
    fails: impl Fn(&Pooled) -> bool,
    passes: impl Fn(&Pooled) -> bool,
) -> (Option<u64>, Option<u64>) {
    let hi = pooled.iter().find(|p| fails(p)).map(|p| p.rate_per_s);
    let below = |p: &&Pooled| hi.is_none_or(|hi| p.rate_per_s < hi);
    let lo = pooled.iter().filter(below).rfind(|p| passes(p)).map(|p| p.rate_per_s);
    (lo, hi)
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;

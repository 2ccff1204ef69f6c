//! The confirmation: rounds of short runs around the knee, and a long run below their answer.

use std::collections::BTreeMap;

use super::bracket::STEP_UP;
use super::knee::{Crossing, crossing};
use super::probes::{Found, Limit, Next, ProbeResult, Purpose, Settings, probe};
use crate::random::SplitMix64;
use crate::student;
use crate::tail::{Batch, Judgement};

/// Ratio of adjacent rates.
const CONFIRMED: f64 = 1.05;
/// Probes per round, each at another rate.
pub const A_ROUND: usize = 3;
/// Length of a run, as a multiple of a first probe.
const CONFIRM_LENGTHS: u64 = 2;
/// Maximum distance from the knee at which probes of the bracket count too, as a logarithm.
const KNOWN_WITHIN: f64 = 0.12;
/// Consecutive rounds that all pass or all fail after which a new bracket starts.
const AGAINST_BRACKET: usize = 2;
/// First rate of a new bracket after one that was too high, as a share of the lowest rate tried.
const STEP_BACK: f64 = 0.7;
/// Length of a hold run as a multiple of a first probe, and the maximum number of such runs.
const HOLD_LENGTHS: u64 = 10;
const HOLDS_MAX: usize = 2;
/// The same if probes contradict each other.
const HOLDS_DOUBTED: usize = 3;
/// Multiple of the allowed share above which an undecided hold run counts as failed. One step below
/// the knee of a slow store, the share is only slightly below the allowed one.
const HOLD_EXCESS: f64 = 1.1;
/// Ratio of the next rate to one that fails its hold run, the maximum number of rates, and the runs
/// that a lower rate must pass decidedly, since after a failure one of several tries passes by
/// chance.
const HOLD_STEP: f64 = 0.8;
const HOLD_STEPS: i32 = 4;
const HOLDS_BELOW: usize = 6;
/// Additional rounds if the knee moves.
const ROUNDS_MORE: usize = 5;
/// Resamples of the interval.
const RESAMPLES: usize = 4_000;

/// Next step of the confirmation.
pub(super) enum Confirmed {
    /// Another probe: its rate, and its length in nanoseconds.
    Probe(u64, u64),
    /// The answer of the rounds.
    Rate(Value),
    /// The bracket was wrong: a new one starts at this rate.
    Anew(f64),
}

/// Requests per second, with their 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Value {
    center: f64,
    lo: f64,
    hi: f64,
}

impl Settings {
    /// Decides the next step from the bracket's probes and those of the confirmation.
    pub(super) fn confirm(
        &self,
        (bracket, runs): (&[&ProbeResult], &[&ProbeResult]),
        knee: f64,
    ) -> Confirmed {
        let rounds: Vec<&[&ProbeResult]> = runs.chunks(A_ROUND).collect();
        let is_near = |s: &&ProbeResult| (s.rate_per_s as f64 / knee).ln().abs() <= KNOWN_WITHIN;
        // A probe that fell behind may be due to a pause of the machine; the rounds repeat it.
        let counts = |s: &&ProbeResult| !s.fell_behind && !s.broke && is_near(s);
        let others: Vec<&ProbeResult> = bracket.iter().copied().filter(counts).collect();
        let wanted = self.rounds.max(1) as usize;
        // Steps from the knee to the middle rate of the round.
        let mut middle = 0;
        let (mut holding, mut missing) = (0, 0);
        for done in 0..=wanted + ROUNDS_MORE {
            let begun = rounds.get(done).map_or(0, |round| round.len());
            if begun < A_ROUND {
                let step = middle + self.order(done)[begun];
                let rate_per_s = (knee * CONFIRMED.powi(step)).round().max(1.0) as u64;
                let length_ns = self.length_ns(rate_per_s).saturating_mul(CONFIRM_LENGTHS);
                return Confirmed::Probe(rate_per_s, length_ns);
            }
            let round = rounds[done];
            let all_are = |judgement| round.iter().all(|s| self.judge(s) == judgement);
            holding = if all_are(Judgement::Pass) { holding + 1 } else { 0 };
            missing = if all_are(Judgement::Fail) { missing + 1 } else { 0 };
            let rates = || round.iter().map(|s| s.rate_per_s as f64);
            if holding == AGAINST_BRACKET {
                return Confirmed::Anew(rates().fold(0.0, f64::max) * STEP_UP);
            }
            if missing == AGAINST_BRACKET {
                return Confirmed::Anew(rates().fold(f64::INFINITY, f64::min) * STEP_BACK);
            }
            let alone = self.crossing(&rounds[..=done], &[]);
            // A disturbed bracket may be too low or too high: then all rounds pass or all fail.
            let crossing = match alone {
                Crossing::At(_) => self.crossing(&rounds[..=done], &others),
                Crossing::Above(_) | Crossing::Below(_) => alone,
            };
            middle = match crossing {
                Crossing::At(center) => {
                    let nearest = ((center / knee).ln() / CONFIRMED.ln()).round() as i32;
                    if done + 1 >= wanted && (nearest - middle).abs() <= 1 {
                        return self.rate(&rounds[..=done], &others, center);
                    }
                    nearest
                }
                Crossing::Above(_) => middle + 1,
                Crossing::Below(_) => middle - 1,
            };
        }
        // The rounds moved away without finding the knee: search with a new bracket, since steps of
        // 5 % are too small.
        Confirmed::Anew(knee * CONFIRMED.powi(middle))
    }

    /// The next hold run, or the end. There are more of them if probes contradict each other, for
    /// example because a store stalls from time to time. After a failed rate a lower one is tried.
    /// `short` are the probes of bracket and rounds.
    pub(super) fn hold(
        &self,
        holds: &[&ProbeResult],
        short: &[&ProbeResult],
        found: Value,
    ) -> Next {
        let is_doubted = self.contradictions(short.iter().chain(holds).copied()).0 > 0;
        let mut above: Option<f64> = None;
        for step in 0..HOLD_STEPS {
            let rate = found.center / CONFIRMED * HOLD_STEP.powi(step);
            let rate_per_s = rate.round().max(1.0) as u64;
            let own = holds.iter().copied().filter(|s| s.rate_per_s == rate_per_s);
            let own: Vec<&ProbeResult> = own.collect();
            let (least, most) = match above {
                Some(_) => (HOLDS_BELOW, HOLDS_BELOW),
                None if is_doubted => (HOLDS_DOUBTED, HOLDS_DOUBTED),
                None => (1, HOLDS_MAX),
            };
            let excess = if above.is_some() { 0.0 } else { HOLD_EXCESS };
            match self.held(&own, (least, most), excess) {
                None => {
                    let length_ns = self.length_ns(rate_per_s).saturating_mul(HOLD_LENGTHS);
                    return probe(Purpose::Hold, rate_per_s, length_ns);
                }
                Some(true) if self.agrees(short.iter().chain(holds), rate) => {
                    let Value { center, lo, hi } = match above {
                        None => found,
                        Some(above) => {
                            Value { center: (rate * above).sqrt(), lo: rate, hi: found.center }
                        }
                    };
                    return Next::Done(Found::Rate { center, lo, hi });
                }
                Some(_) => above = Some(rate),
            }
        }
        Next::Done(Found::NotHeld(above.unwrap_or(found.center) as u64))
    }

    /// True if the hold runs at a rate passed; `None` while more of them are needed, between a
    /// minimum and a maximum number. If they stay undecided, up to `excess` times the allowed share
    /// passes.
    fn held(
        &self,
        own: &[&ProbeResult],
        (least, most): (usize, usize),
        excess: f64,
    ) -> Option<bool> {
        let together = self.judge_all(own);
        let is_near =
            |limit: &Limit| limit.tail(own.iter().copied()).share() <= excess * limit.allowed;
        match together.judgement {
            _ if own.is_empty() => None,
            Judgement::Fail => Some(false),
            _ if own.len() < least => None,
            Judgement::Pass => Some(true),
            Judgement::Undecided if own.len() < most => None,
            Judgement::Undecided => Some(self.limits.iter().all(is_near)),
        }
    }

    /// True if, of all requests due up to a rate, no more than allowed are beyond any limit.
    fn agrees<'a, 'b: 'a>(
        &self,
        judged: impl Iterator<Item = &'a &'b ProbeResult> + Clone,
        rate_per_s: f64,
    ) -> bool {
        let below = judged.filter(|s| s.rate_per_s as f64 <= rate_per_s + 1.0);
        self.limits.iter().all(|limit| {
            let runs = below.clone().copied();
            limit.tail(runs).share() <= HOLD_EXCESS * limit.allowed
        })
    }

    /// Order of the rates in a round, as steps from the middle rate.
    fn order(&self, round: usize) -> [i32; A_ROUND] {
        let mut random = SplitMix64::new(self.seed ^ (round as u64).wrapping_mul(0x2545_f491));
        let mut order = [-1, 0, 1];
        order.swap(2, random.index(3));
        order.swap(1, random.index(2));
        order
    }

    /// The highest rate at which all limits hold, from these rounds and other probes nearby.
    fn crossing(&self, rounds: &[&[&ProbeResult]], others: &[&ProbeResult]) -> Crossing {
        let mut first = Crossing::Above(f64::INFINITY);
        for limit in &self.limits {
            let mut counts: BTreeMap<u64, Batch> = BTreeMap::new();
            let all = rounds.iter().flat_map(|round| round.iter()).chain(others);
            for seen in all {
                let own = counts.entry(seen.rate_per_s).or_default();
                let (requests, over) = counted(seen, limit.limit_ns);
                own.requests += requests;
                own.over += over;
            }
            let crossing = crossing(&counts, limit.allowed);
            if crossing.rate() < first.rate() {
                first = crossing;
            }
        }
        match (first, answered(rounds)) {
            (Crossing::At(rate), Some(most)) if most < rate => Crossing::At(most),
            (first, _) => first,
        }
    }

    fn rate(&self, rounds: &[&[&ProbeResult]], others: &[&ProbeResult], center: f64) -> Confirmed {
        let n = rounds.len();
        let mut random = SplitMix64::new(self.seed);
        let mut rates: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                let drawn: Vec<&[&ProbeResult]> = (0..n).map(|_| rounds[random.index(n)]).collect();
                let beside = others.iter().map(|_| others[random.index(others.len())]);
                self.crossing(&drawn, &beside.collect::<Vec<_>>()).rate()
            })
            .filter(|rate| rate.is_finite())
            .collect();
        rates.sort_by(f64::total_cmp);
        // The coverage of plain percentiles of few rounds is too low: see module `interval`.
        let freedom = (n as f64 - 1.0).max(1.0);
        let widened = (n as f64 / freedom).sqrt() * student::critical(0.025, freedom);
        let at = (student::normal_tail(widened) * rates.len() as f64) as usize;
        let at = at.min(rates.len().saturating_sub(1) / 2);
        let end = |i: usize| rates.get(i).copied().unwrap_or(center);
        let (lo, hi) = (end(at), end(rates.len().saturating_sub(1 + at)));
        Confirmed::Rate(Value { center, lo: lo.min(center), hi: hi.max(center) })
    }
}

/// Mean rate of probes in which the store fell behind, requests per second. It bounds the answer
/// even if a limit is so long that the queue does not reach it within a probe. `None` without such
/// probes.
fn answered(rounds: &[&[&ProbeResult]]) -> Option<f64> {
    let behind = rounds.iter().flat_map(|round| round.iter());
    let behind = behind.filter(|s| s.fell_behind && !s.broke);
    let (mut answers, mut seconds) = (0.0, 0.0);
    for seen in behind {
        let length_s = seen.length_ns as f64 / 1e9;
        (answers, seconds) = (answers + seen.answered_per_s * length_s, seconds + length_s);
    }
    (seconds > 0.0).then(|| answers / seconds)
}

/// Requests of a run, and those beyond a limit: all of them if it broke or fell behind.
fn counted(seen: &ProbeResult, limit_ns: u64) -> (u64, u64) {
    let sum = |count: fn(&Batch) -> u64| seen.batches(limit_ns).iter().map(count).sum::<u64>();
    let planned = seen.rate_per_s as f64 * seen.length_ns as f64 / 1e9;
    let requests = sum(|batch| batch.requests).max(if seen.broke { planned as u64 } else { 0 });
    (requests, if seen.broke || seen.fell_behind { requests } else { sum(|batch| batch.over) })
}

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
//!    say. Two rounds in a row that surely hold throughout, or surely miss throughout, contradict
//!    the bracket, and so do rounds that move on until there may be no more of them: it is made
//!    anew, from there on.
//!
//! 5. the hold: a long run one step below that. What it misses, short runs have missed by chance: a
//!    store that stalls every few seconds does so at any rate. Then lower rates are tried, and the
//!    answer lies between the first that is held and the one above it.
//!
//! Every probe counts with all of its requests. A rate is held only where all probes up to it
//! agree: no more of their requests are beyond a limit than may be.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

mod bracket;
mod confirm;
mod knee;
mod told;

pub use self::confirm::A_ROUND;

use self::bracket::Bracketed;
use self::confirm::Confirmed;
use crate::tail::{Batch, Judgement, Tail};

/// The first rate of the bracket, as a share of the peak.
const FIRST_SHARE: f64 = 0.7;
/// The rate of a rest, as a share of the peak.
const REST_SHARE: f64 = 0.1;
/// Requests of a rest, if it takes no longer than a probe, and how often its shortest length goes
/// into one.
const REST_REQUESTS: f64 = 20.0;
const RESTS_A_PROBE: u64 = 10;
/// Rests in a row after which the next probe does not wait any longer.
const RESTS_MAX: usize = 8;
/// Requests beyond the limit that a probe would see at the limit, which sets its length.
const OVER_WANTED: f64 = 4.0;
/// Longest first length of a probe, in those asked for.
const LONGEST: u64 = 30;
/// Share of what may be beyond a limit from which on an undecided probe is near the knee.
const NEAR: f64 = 1.0 / 3.0;
/// Probes in a row that broke, after which the search gives up.
const BROKEN_MAX: usize = 3;
/// How often a bracket is made.
const BRACKETS_MAX: usize = 3;

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
    /// To see it last.
    Hold,
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
    /// Of a rest: true where the store answers as at the first one.
    pub at_rest: bool,
}

impl Seen {
    /// True where it is there to be judged.
    pub fn is_judged(&self) -> bool {
        matches!(self.purpose, Purpose::Bracket | Purpose::Confirm | Purpose::Hold)
    }
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
    /// Short probes kept the limits, and long ones did not down to this rate.
    NotHeld(u64),
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
    /// Length of all of them, and of the first.
    length_ns: u64,
    first_ns: u64,
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
        self.after_rest(seen, peak_per_s)
    }

    /// The next probe that is judged, or the end.
    fn after_rest(&self, seen: &[Seen], peak_per_s: f64) -> Next {
        let judged: Vec<&Seen> = seen.iter().filter(|s| s.is_judged()).collect();
        let (mut rest, mut from_per_s) = (&judged[..], peak_per_s * FIRST_SHARE);
        for _ in 0..BRACKETS_MAX {
            let (bracket, others) = split_where(rest, |s| s.purpose == Purpose::Confirm);
            let (confirmed, others) = split_where(others, |s| s.purpose == Purpose::Bracket);
            let (rounds, holds) = split_where(confirmed, |s| s.purpose == Purpose::Hold);
            let knee = match self.bracket(bracket, peak_per_s, from_per_s) {
                Bracketed::Probe(rate_per_s, length_ns) => {
                    return probe(Purpose::Bracket, rate_per_s, length_ns);
                }
                Bracketed::Knee(knee) => knee,
                Bracketed::Done(found) => return Next::Done(found),
            };
            match self.confirm((bracket, rounds), knee) {
                Confirmed::Probe(rate_per_s, length_ns) => {
                    return probe(Purpose::Confirm, rate_per_s, length_ns);
                }
                Confirmed::Rate(value) => {
                    return self.hold(holds, &[bracket, rounds].concat(), value);
                }
                Confirmed::Anew(rate_per_s) => (rest, from_per_s) = (others, rate_per_s),
            }
        }
        let rates = judged.iter().map(|s| s.rate_per_s);
        let (lowest, highest) = (rates.clone().min(), rates.max());
        Next::Done(Found::Unsettled(lowest.unwrap_or(0), highest.unwrap_or(0)))
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
    fn pooled<'a>(&self, seen: impl IntoIterator<Item = &'a Seen>) -> Vec<Pooled> {
        let mut by_rate: BTreeMap<u64, Vec<&Seen>> = BTreeMap::new();
        seen.into_iter().for_each(|s| by_rate.entry(s.rate_per_s).or_default().push(s));
        let pooled = by_rate.into_iter().map(|(rate_per_s, runs)| Pooled {
            rate_per_s,
            together: self.judge_all(&runs),
            length_ns: runs.iter().map(|s| s.length_ns).sum(),
            first_ns: runs.first().map_or(0, |s| s.length_ns),
        });
        pooled.collect()
    }

    /// The first length of a probe at a rate.
    fn length_ns(&self, rate_per_s: u64) -> u64 {
        let rarest = self.allowed.iter().copied().fold(1.0, f64::min);
        let wanted = (OVER_WANTED / rarest / rate_per_s as f64 * 1e9) as u64;
        wanted.clamp(self.probe_ns, self.probe_ns.saturating_mul(LONGEST))
    }
}

/// What comes before the first probe of a kind, and from there on.
fn split_where<'a, 'b>(
    probes: &'b [&'a Seen],
    is_other: impl Fn(&Seen) -> bool,
) -> (&'b [&'a Seen], &'b [&'a Seen]) {
    let at = probes.iter().position(|s| is_other(s)).unwrap_or(probes.len());
    probes.split_at(at)
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

//! The probes of a search: what they are for, what they gave, and what several say together.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::tail::{Batch, Judgement, Tail};

/// Requests beyond the limit that a probe would see at the limit, which sets its length.
const OVER_WANTED: f64 = 4.0;
/// Longest first length of a probe, in those asked for.
const LONGEST: u64 = 30;
/// Share of what may be beyond a limit from which on an undecided probe is near the knee.
const NEAR: f64 = 1.0 / 3.0;

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

/// How late an answer may be, and how many may be later.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// Response time, nanoseconds; the largest number where only failing counts.
    pub limit_ns: u64,
    /// Share of requests that may take longer or fail, between 0 and 1.
    pub allowed: f64,
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Peak => "peak",
            Self::Rest => "rest",
            Self::Bracket => "bracket",
            Self::Confirm => "confirm",
            Self::Hold => "hold",
        })
    }
}

/// What the search is to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// All of them must hold; at least one.
    pub limits: Vec<Limit>,
    /// Shortest length of a probe, nanoseconds, above 0.
    pub probe_ns: u64,
    /// Rounds of the confirmation, at least 1.
    pub rounds: u32,
    /// Order of the confirmation, and resamples.
    pub seed: u64,
}

/// What a probe gave.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeResult {
    /// What it was for.
    pub purpose: Purpose,
    /// Requests per second as planned; 0 for the peak.
    pub rate_per_s: u64,
    /// Requests answered per second.
    pub answered_per_s: f64,
    /// How long it was, nanoseconds.
    pub length_ns: u64,
    /// What was due in each span of time, by [`Limit::limit_ns`]; all spans are as long. Empty for
    /// the peak.
    pub batches: BTreeMap<u64, Vec<Batch>>,
    /// True where the store answered fewer than were due, so that a queue grew.
    pub fell_behind: bool,
    /// True where it broke: the server ended, or refused.
    pub broke: bool,
    /// Of a rest: true where the store answers as at the first one.
    pub at_rest: bool,
}

impl ProbeResult {
    /// True where it is there to be judged.
    pub fn is_judged(&self) -> bool {
        matches!(self.purpose, Purpose::Bracket | Purpose::Confirm | Purpose::Hold)
    }

    /// What was due in each span of time, and what of it was beyond a limit.
    pub fn batches(&self, limit_ns: u64) -> &[Batch] {
        self.batches.get(&limit_ns).map_or(&[], Vec::as_slice)
    }
}

impl Limit {
    /// Requests of several runs, and those beyond it.
    pub(super) fn tail<'a>(&self, runs: impl IntoIterator<Item = &'a ProbeResult>) -> Tail {
        Tail::of(runs.into_iter().map(|seen| seen.batches(self.limit_ns)))
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
pub(super) struct Together {
    pub(super) judgement: Judgement,
    /// Where it is undecided: which way it leans.
    pub(super) leans_to_pass: bool,
    /// Where it is undecided: true when as many are beyond a limit as could be at the knee.
    pub(super) is_near: bool,
}

/// What all probes at a rate say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pooled {
    pub(super) rate_per_s: u64,
    pub(super) together: Together,
    /// Length of all of them, and of the first.
    pub(super) length_ns: u64,
    pub(super) first_ns: u64,
}

impl Pooled {
    pub(super) fn passes(&self) -> bool {
        match self.together.judgement {
            Judgement::Pass => true,
            Judgement::Fail => false,
            Judgement::Undecided => self.together.leans_to_pass,
        }
    }
}

impl Settings {
    /// What runs at one rate say together.
    pub(super) fn judge_all(&self, runs: &[&ProbeResult]) -> Together {
        if runs.is_empty() || runs.iter().any(|s| s.fell_behind || s.broke) {
            return Together { judgement: Judgement::Fail, leans_to_pass: false, is_near: false };
        }
        let mut all = Together { judgement: Judgement::Pass, leans_to_pass: true, is_near: false };
        for limit in &self.limits {
            let tail = limit.tail(runs.iter().copied());
            let judgement = tail.judge(limit.allowed);
            all.leans_to_pass &= tail.share() <= limit.allowed;
            let is_near = tail.share() >= NEAR * limit.allowed;
            all.is_near |= judgement == Judgement::Undecided && is_near;
            all.judgement = match (all.judgement, judgement) {
                (Judgement::Fail, _) | (_, Judgement::Fail) => Judgement::Fail,
                (Judgement::Pass, Judgement::Pass) => Judgement::Pass,
                _ => Judgement::Undecided,
            };
        }
        all
    }

    /// By rate, ascending.
    pub(super) fn pooled<'a>(
        &self,
        seen: impl IntoIterator<Item = &'a ProbeResult>,
    ) -> Vec<Pooled> {
        let mut by_rate: BTreeMap<u64, Vec<&ProbeResult>> = BTreeMap::new();
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
    pub(super) fn length_ns(&self, rate_per_s: u64) -> u64 {
        let rarest = self.limits.iter().map(|limit| limit.allowed).fold(1.0, f64::min);
        let wanted = (OVER_WANTED / rarest / rate_per_s as f64 * 1e9) as u64;
        wanted.clamp(self.probe_ns, self.probe_ns.saturating_mul(LONGEST))
    }
}

pub(super) fn probe(purpose: Purpose, rate_per_s: u64, length_ns: u64) -> Next {
    Next::Probe(Step { purpose, rate_per_s, length_ns })
}

pub(super) fn share_of(peak_per_s: f64, share: f64) -> u64 {
    (peak_per_s * share).ceil().max(1.0) as u64
}

/// The highest rate that passes below the lowest that fails, and that one; `None` where there is
/// none.
pub(super) fn ends(
    pooled: &[Pooled],
    fails: impl Fn(&Pooled) -> bool,
    passes: impl Fn(&Pooled) -> bool,
) -> (Option<u64>, Option<u64>) {
    let hi = pooled.iter().find(|p| fails(p)).map(|p| p.rate_per_s);
    let below = |p: &&Pooled| hi.is_none_or(|hi| p.rate_per_s < hi);
    let lo = pooled.iter().filter(below).rfind(|p| passes(p)).map(|p| p.rate_per_s);
    (lo, hi)
}

//! The probes of a search: purpose, results, and pooled judgements.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::tail::{Batch, Judgement, Tail};

/// Expected requests beyond the limit if exactly the allowed share is; determines a probe's length.
const OVER_WANTED: f64 = 4.0;
/// Maximum first length of a probe, as a multiple of the requested one.
const LONGEST: u64 = 30;
/// Fraction of the allowed share above which an undecided probe is near the knee.
const NEAR: f64 = 1.0 / 3.0;

/// Purpose of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// Finds the highest rate of a closed load.
    Peak,
    /// Runs at a low rate until latency is that of the unloaded store.
    #[serde(rename = "rest")]
    CoolDown,
    /// Finds the approximate knee.
    Bracket,
    /// Measures the knee.
    Confirm,
    /// Checks in a long run that the rate is sustained.
    Hold,
}

/// A latency limit for a share of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// Response time, nanoseconds; the largest number if only failures count.
    pub limit_ns: u64,
    /// Allowed share of requests that take longer or fail, between 0 and 1.
    pub allowed: f64,
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Peak => "peak",
            Self::CoolDown => "rest",
            Self::Bracket => "bracket",
            Self::Confirm => "confirm",
            Self::Hold => "hold",
        })
    }
}

/// Settings of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Limits, at least one; all must hold.
    pub limits: Vec<Limit>,
    /// Minimum length of a probe, nanoseconds, above 0.
    pub probe_ns: u64,
    /// Rounds of the confirmation, at least 1.
    pub rounds: u32,
    /// Seed of the order of probes and of the bootstrap.
    pub seed: u64,
}

/// Result of a probe.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeResult {
    /// Its purpose.
    pub purpose: Purpose,
    /// Planned requests per second; 0 for the peak.
    pub rate_per_s: u64,
    /// Answered requests per second.
    pub answered_per_s: f64,
    /// Length, nanoseconds.
    pub length_ns: u64,
    /// Requests due per time span, by [`Limit::limit_ns`]; all spans have the same length. Empty
    /// for the peak.
    pub batches: BTreeMap<u64, Vec<Batch>>,
    /// True if the store answered fewer requests than were due, so that a queue grew.
    pub fell_behind: bool,
    /// True if it broke: the server died or refused connections.
    pub broke: bool,
    /// For a cool-down: true if latency is back to that of the first one.
    pub settled: bool,
}

impl ProbeResult {
    /// True if the probe is judged against the limits.
    pub fn is_judged(&self) -> bool {
        matches!(self.purpose, Purpose::Bracket | Purpose::Confirm | Purpose::Hold)
    }

    /// Requests due per time span, and those beyond a limit.
    pub fn batches(&self, limit_ns: u64) -> &[Batch] {
        self.batches.get(&limit_ns).map_or(&[], Vec::as_slice)
    }
}

impl Limit {
    /// Requests of several runs, and those beyond this limit.
    pub(super) fn tail<'a>(&self, runs: impl IntoIterator<Item = &'a ProbeResult>) -> Tail {
        Tail::of(runs.into_iter().map(|seen| seen.batches(self.limit_ns)))
    }
}

/// The next probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Its purpose.
    pub purpose: Purpose,
    /// Requests per second; 0 for the peak, which is unlimited.
    pub rate_per_s: u64,
    /// Length, nanoseconds.
    pub length_ns: u64,
}

/// Outcome of a search.
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
    /// No request of the peak was answered.
    Nothing,
    /// Even this low rate exceeds a limit.
    Missed(u64),
    /// Even this rate, far above the peak, is within the limits.
    NeverMissed(u64),
    /// The knee kept moving during confirmation; the lowest and the highest rate tried.
    Unsettled(u64, u64),
    /// Short probes were within the limits, but long ones were not, down to this rate.
    NotHeld(u64),
    /// Consecutive probes broke.
    Broken,
}

/// Next step of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// Another probe.
    Probe(Step),
    /// The search is over.
    Done(Found),
}

/// Joint judgement of several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct JointJudgement {
    pub(super) judgement: Judgement,
    /// If undecided: true if a pass is more likely.
    pub(super) leans_to_pass: bool,
    /// If undecided: true if the share beyond a limit is typical for the knee.
    pub(super) is_near: bool,
}

/// All probes at one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pooled {
    pub(super) rate_per_s: u64,
    pub(super) together: JointJudgement,
    /// Total length, and the length of the first.
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
    /// Judges runs at one rate together.
    pub(super) fn judge_all(&self, runs: &[&ProbeResult]) -> JointJudgement {
        if runs.is_empty() || runs.iter().any(|s| s.fell_behind || s.broke) {
            return JointJudgement {
                judgement: Judgement::Fail,
                leans_to_pass: false,
                is_near: false,
            };
        }
        let mut all =
            JointJudgement { judgement: Judgement::Pass, leans_to_pass: true, is_near: false };
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

    /// Pools probes by rate, ascending.
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

    /// Length of the first probe at a rate, nanoseconds.
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

/// The lowest failing rate, and the highest passing rate below it; `None` if there is none.
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

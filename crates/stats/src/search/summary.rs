//! What the probes of a search say besides its answer.

use super::probes::{Pooled, ProbeResult, Settings, Together, ends};
use crate::tail::Judgement;

impl Settings {
    /// What one probe says of the limits by itself.
    pub fn judge(&self, seen: &ProbeResult) -> Judgement {
        self.judge_all(&[seen]).judgement
    }

    /// True where no more requests were beyond any limit than may be, by itself; false where it
    /// fell behind or broke.
    pub fn keeps_limits(&self, seen: &ProbeResult) -> bool {
        self.judge_all(&[seen]).leans_to_pass
    }

    /// The rates between which the knee lies, as far as that is decided: the highest at which all
    /// probes together hold, below the lowest at which they do not. Probes that broke
    /// say nothing of it.
    pub fn known(&self, seen: &[ProbeResult]) -> (Option<u64>, Option<u64>) {
        let judged = |s: &&ProbeResult| s.is_judged() && !s.broke;
        let pooled = self.pooled(seen.iter().filter(judged));
        let is = |judgement| move |p: &Pooled| p.together.judgement == judgement;
        ends(&pooled, is(Judgement::Fail), is(Judgement::Pass))
    }

    /// How many probes surely had more requests beyond a limit than may be, at a rate no higher
    /// than one that surely held, and of how many: of a store that stays as it is, few near the
    /// knee.
    pub fn contradictions<'a>(
        &self,
        seen: impl IntoIterator<Item = &'a ProbeResult>,
    ) -> (usize, usize) {
        let judged: Vec<(u64, Together)> = seen
            .into_iter()
            .filter(|s| s.is_judged() && !s.broke)
            .map(|s| (s.rate_per_s, self.judge_all(&[s])))
            .collect();
        let held = judged.iter().filter(|(_, t)| t.judgement == Judgement::Pass);
        let highest = held.map(|(rate, _)| *rate).max().unwrap_or(0);
        let misses = |t: &Together| t.judgement == Judgement::Fail;
        let against = judged.iter().filter(|(rate, t)| *rate <= highest && misses(t));
        (against.count(), judged.len())
    }
}

//! Further results of a search's probes.

use super::probes::{JointJudgement, Pooled, ProbeResult, Settings, ends};
use crate::tail::Judgement;

impl Settings {
    /// Judges one probe alone.
    pub fn judge(&self, seen: &ProbeResult) -> Judgement {
        self.judge_all(&[seen]).judgement
    }

    /// True if one probe alone has no more requests than allowed beyond any limit; false if it fell
    /// behind or broke.
    pub fn keeps_limits(&self, seen: &ProbeResult) -> bool {
        self.judge_all(&[seen]).leans_to_pass
    }

    /// Known bounds of the knee: the highest rate whose probes together pass, and the lowest above
    /// it whose probes fail. Broken probes do not count.
    pub fn known(&self, seen: &[ProbeResult]) -> (Option<u64>, Option<u64>) {
        let judged = |s: &&ProbeResult| s.is_judged() && !s.broke;
        let pooled = self.pooled(seen.iter().filter(judged));
        let is = |judgement| move |p: &Pooled| p.together.judgement == judgement;
        ends(&pooled, is(Judgement::Fail), is(Judgement::Pass))
    }

    /// Number of probes that decidedly failed at a rate no higher than one that decidedly passed,
    /// and the number of probes. For a stable store there are few, all near the knee.
    pub fn contradictions<'a>(
        &self,
        seen: impl IntoIterator<Item = &'a ProbeResult>,
    ) -> (usize, usize) {
        let judged: Vec<(u64, JointJudgement)> = seen
            .into_iter()
            .filter(|s| s.is_judged() && !s.broke)
            .map(|s| (s.rate_per_s, self.judge_all(&[s])))
            .collect();
        let held = judged.iter().filter(|(_, t)| t.judgement == Judgement::Pass);
        let highest = held.map(|(rate, _)| *rate).max().unwrap_or(0);
        let misses = |t: &JointJudgement| t.judgement == Judgement::Fail;
        let against = judged.iter().filter(|(rate, t)| *rate <= highest && misses(t));
        (against.count(), judged.len())
    }
}

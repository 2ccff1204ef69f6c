//! Decides whether a share of all requests is within a limit, from the number of requests beyond
//! the limit rather than from an estimated percentile.
//!
//! For "p99 < L" the share of requests slower than L is compared with 1 % by the exact binomial
//! interval of Clopper and Pearson ("The use of confidence or fiducial limits illustrated in the
//! case of the binomial", 1934). Adjacent requests wait in the same queue, so they are correlated
//! and count for fewer. The number of requests is divided by the design effect: the variance of the
//! counts between batches of time, relative to that of independent requests (Kish, "Survey
//! sampling", 1965; batch means as in Law, "Simulation modeling and analysis", 2014, 9.5.3).

use statrs::function::beta::beta_reg;

/// One-sided error probability of an interval.
const TAIL: f64 = 0.025;
/// Minimum number of batches for a variance; batches are merged as long as this many remain.
const BATCHES_MIN: usize = 10;

/// Requests due in a time span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// All requests.
    pub requests: u64,
    /// Requests beyond the limit or failed.
    pub over: u64,
}

/// Result of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Fewer requests than allowed are beyond the limit.
    Pass,
    /// More requests than allowed are beyond the limit.
    Fail,
    /// Too few requests, or too close to the allowed share.
    Undecided,
}

/// Number of requests, of those beyond the limit, and the effective sample size.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tail {
    /// All requests.
    pub requests: u64,
    /// Requests beyond the limit.
    pub over: u64,
    /// Effective sample size: equivalent number of independent requests, at most
    /// [`Tail::requests`].
    pub effective: f64,
}

impl Tail {
    /// Of several runs, each with batches of equal length in order of time.
    pub fn of<'a>(runs: impl IntoIterator<Item = &'a [Batch]>) -> Self {
        let runs: Vec<&[Batch]> = runs.into_iter().collect();
        let sum =
            |count: fn(&Batch) -> u64| runs.iter().flat_map(|run| run.iter()).map(count).sum();
        let (requests, over): (u64, u64) = (sum(|b| b.requests), sum(|b| b.over));
        let mut effect = 1.0_f64;
        for width in [1, 2, 4, 8, 16] {
            let merged = runs.iter().flat_map(|run| run.chunks(width));
            let batches: Vec<Batch> =
                merged.map(|c| c.iter().copied().fold(Batch::default(), plus)).collect();
            if width > 1 && batches.len() < BATCHES_MIN {
                break;
            }
            effect = effect.max(design_effect(&batches, over as f64 / requests.max(1) as f64));
        }
        Self { requests, over, effective: requests as f64 / effect }
    }

    /// Share of requests beyond the limit, 0 to 1; 0 without requests.
    pub fn share(&self) -> f64 {
        self.over as f64 / self.requests.max(1) as f64
    }

    /// Tests whether at most a share `allowed` (between 0 and 1, exclusive) is beyond the limit.
    pub fn judge(&self, allowed: f64) -> Judgement {
        let (n, k) = (self.effective, self.share() * self.effective);
        // The interval's bounds are quantiles of beta distributions, so comparing their tails at
        // `allowed` is enough.
        let below = k < n && beta_reg(k + 1.0, n - k, allowed) > 1.0 - TAIL;
        let above = k > 0.0 && beta_reg(k, n - k + 1.0, allowed) < TAIL;
        match (below, above) {
            (true, _) => Judgement::Pass,
            (_, true) => Judgement::Fail,
            _ => Judgement::Undecided,
        }
    }
}

fn plus(a: Batch, b: Batch) -> Batch {
    Batch { requests: a.requests + b.requests, over: a.over + b.over }
}

/// Variance of the counts between batches relative to that of independent requests with the same
/// `share`; at least 1.
fn design_effect(batches: &[Batch], share: f64) -> f64 {
    let filled: Vec<&Batch> = batches.iter().filter(|b| b.requests > 0).collect();
    let independent = share * (1.0 - share);
    if filled.len() < 2 || independent <= 0.0 {
        return 1.0;
    }
    let spread = |b: &&Batch| {
        let requests = b.requests as f64;
        (b.over as f64 - share * requests).powi(2) / (requests * independent)
    };
    (filled.iter().map(spread).sum::<f64>() / (filled.len() - 1) as f64).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    fn run(counts: &[(u64, u64)]) -> Vec<Batch> {
        counts.iter().map(|(requests, over)| Batch { requests: *requests, over: *over }).collect()
    }

    fn tail(requests: u64, over: u64) -> Tail {
        Tail { requests, over, effective: requests as f64 }
    }

    /// 0 of n is below 1 % from n = ln(0.025)/ln(0.99) up. By the tables of Clopper and Pearson, 5
    /// of 100 has the interval 1.64 % to 11.28 %, 4 of 100 1.10 % to 9.93 %, 3 of 100 0.62 % to
    /// 8.52 %.
    #[test]
    fn bounds_match_the_tables() {
        assert_eq!(tail(368, 0).judge(0.01), Judgement::Pass);
        assert_eq!(tail(367, 0).judge(0.01), Judgement::Undecided);
        let five = tail(100, 5);
        assert_eq!(five.judge(0.0163), Judgement::Fail);
        assert_eq!(five.judge(0.0165), Judgement::Undecided);
        assert_eq!(five.judge(0.1127), Judgement::Undecided);
        assert_eq!(five.judge(0.1129), Judgement::Pass);
        assert_eq!(tail(100, 100).judge(0.01), Judgement::Fail);
        assert_eq!(tail(0, 0).judge(0.01), Judgement::Undecided);
    }

    #[test]
    fn a_burst_counts_once() {
        let spread = run(&[(1000, 3); 20]);
        let mut burst = run(&[(1000, 0); 20]);
        burst[7].over = 60;
        let (spread, burst) = (Tail::of([&spread[..]]), Tail::of([&burst[..]]));
        assert_eq!((spread.over, burst.over), (60, 60));
        assert_eq!(spread.judge(0.01), Judgement::Pass);
        assert_eq!(burst.judge(0.01), Judgement::Undecided, "{burst:?}");
        assert!(burst.effective < spread.effective / 10.0, "{burst:?}");
    }

    #[test]
    fn an_endlessly_growing_queue_fails() {
        let growing: Vec<Batch> =
            (0..10).map(|i| Batch { requests: 500, over: if i < 2 { 0 } else { 500 } }).collect();
        assert_eq!(Tail::of([&growing[..]]).judge(0.01), Judgement::Fail);
    }

    /// Independent requests exactly at the allowed share are decided in at most 5 % of all runs.
    #[test]
    fn at_the_allowed_share_a_decision_is_rare() {
        let mut random = SplitMix64::new(11);
        let mut decided = 0;
        for _ in 0..400 {
            let batch = |random: &mut SplitMix64| Batch {
                requests: 500,
                over: (0..500).filter(|_| random.index(100) == 0).count() as u64,
            };
            let run: Vec<Batch> = (0..20).map(|_| batch(&mut random)).collect();
            decided += u32::from(Tail::of([&run[..]]).judge(0.01) != Judgement::Undecided);
        }
        assert!(decided <= 20, "{decided} of 400");
    }
}

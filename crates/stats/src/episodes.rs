//! Confidence of a latency quantile when slow requests come in episodes.
//!
//! A stall of a store delays all requests due during it, so thousands of slow requests may be a
//! handful of events, or one. Two consequences:
//!
//! - **Episodes** are counted from the longest time in each short interval. An interval is slow if
//!   its longest time is beyond the quantile; adjacent slow intervals form one episode. If slow
//!   intervals were independent with share s, a slow interval would end a run with probability
//!   1 − s, so the number of runs is divided by that (the runs estimator of the extremal index,
//!   Smith and Weissman, J. R. Statist. Soc. B 56 (1994) 515). Otherwise a median, which some
//!   request exceeds in every interval, would come from a single episode. Unequal episodes count
//!   less: if m of them contain a share w of all slow requests, their effective number is at most
//!   m / w² (Kish, "Survey sampling", 1965).
//! - **The share** of requests beyond the quantile, not the quantile, has a known error. The bounds
//!   of the share are read as quantiles of all requests (Woodruff, J. Amer. Statist. Assoc. 47
//!   (1952) 635). The error is the greater of the spread between blocks, by Student's t on
//!   logarithms, and that of a Poisson count of the episodes.

use crate::Histogram;
use crate::student;

/// Effective episodes required for a confidence interval.
pub const EPISODES_MIN: f64 = 10.0;
/// Measured time required for a confidence interval, times the share beyond the quantile, seconds.
/// A run cannot contain stalls that are rarer than its length; the shorter the run, the shorter the
/// unseen stalls that could move the quantile.
pub const BEYOND_S_MIN: f64 = 0.2;

/// One-sided error probability of a confidence interval, and its normal deviate.
const TAIL: f64 = 0.025;
const NORMAL: f64 = 1.959_964;
/// Ratio between consecutive shares of the tail that are searched for dominant episodes.
const STEP: f64 = 1.12;

/// Latencies of one block.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// Times of answered requests.
    pub answered: &'a Histogram,
    /// Number of failed requests; they count as slower than any other.
    pub failed: u64,
    /// Longest time in each interval; 0 without requests, the largest number if one failed.
    pub longest_ns: &'a [u64],
}

impl Block<'_> {
    fn requests(&self) -> u64 {
        self.answered.count() + self.failed
    }

    fn slower_than(&self, ns: u64) -> u64 {
        let slower = self.answered.recorded().filter(|(value, _)| *value > ns);
        slower.map(|(_, count)| count).sum::<u64>() + self.failed
    }
}

/// Latencies of several blocks together.
#[derive(Debug)]
pub struct Pooled<'a> {
    blocks: Vec<Block<'a>>,
    tail: Tail,
}

impl<'a> Pooled<'a> {
    /// Pools blocks; those without requests are ignored.
    pub fn of(blocks: Vec<Block<'a>>) -> Self {
        let tail = Tail::of(&blocks);
        Self { blocks, tail }
    }

    /// Effective number of episodes beyond the quantile `q` of all requests; 0 without requests.
    pub fn episodes(&self, q: f64) -> f64 {
        let beyond = (1.0 - q) * self.tail.requests as f64;
        let (mut least, mut part) = (f64::INFINITY, 1.0);
        // Smaller shares cannot reduce the number below the minimum.
        while part * part * EPISODES_MIN >= 1.0 {
            let (below_ns, over) = self.tail.rarest(part * beyond);
            if over == 0 {
                return 0.0;
            }
            let weight = (over as f64 / beyond).min(1.0);
            let episodes = Slow::than(&self.blocks, below_ns).episodes();
            least = least.min(episodes / (weight * weight));
            part /= STEP;
        }
        least
    }

    /// 95 % confidence interval (ascending) of the share of requests beyond the quantile `q`, whose
    /// value is `at_ns`. Needs at least two blocks.
    pub fn shares_beyond(&self, q: f64, at_ns: u64) -> (f64, f64) {
        let count = |b: &Block<'_>| (b.slower_than(at_ns) as f64, b.requests() as f64);
        let counts: Vec<(f64, f64)> = self.blocks.iter().map(count).collect();
        let over: f64 = counts.iter().map(|(k, _)| k).sum();
        let (requests, n) = (self.tail.requests as f64, counts.len() as f64);
        let share = over / requests;
        let squares: f64 = counts.iter().map(|(k, of)| (k - share * of).powi(2)).sum();
        let between = if over > 0.0 { (squares * n / (n - 1.0)).sqrt() / over } else { 0.0 };
        let reach = student::critical(TAIL, n - 1.0) * between;
        let slow = Slow::than(&self.blocks, self.tail.rarest((1.0 - q) * requests).0);
        // If every interval is slow, the number of episodes gives no bound.
        let episodes = slow.episodes() / (1.0 - slow.share()).max(f64::EPSILON);
        let (least, most) = poisson(episodes);
        let low = (-reach).exp().min(least / episodes);
        let high = reach.exp().max(most / episodes);
        ((1.0 - q) * low, ((1.0 - q) * high).min(1.0))
    }
}

/// Bounds of the mean of a Poisson count: Garwood's, in the approximation by Wilson and Hilferty.
fn poisson(count: f64) -> (f64, f64) {
    let bound = |n: f64, z: f64| n * (1.0 - 1.0 / (9.0 * n) + z / (3.0 * n.sqrt())).powi(3);
    (bound(count, -NORMAL).max(0.0), bound(count + 1.0, NORMAL))
}

/// Times of all blocks in descending order, with the number of requests for each.
#[derive(Debug)]
struct Tail {
    descending: Vec<(u64, u64)>,
    failed: u64,
    requests: u64,
}

impl Tail {
    fn of(blocks: &[Block<'_>]) -> Self {
        let mut all = Histogram::new();
        for block in blocks {
            all.merge(block.answered);
        }
        let mut descending: Vec<(u64, u64)> = all.recorded().collect();
        descending.reverse();
        let failed = blocks.iter().map(|b| b.failed).sum();
        Self { descending, failed, requests: all.count() + failed }
    }

    /// The slowest `requests` requests (at least one), including ties: the time that all of them
    /// exceed, and their number.
    fn rarest(&self, requests: f64) -> (u64, u64) {
        let mut over = self.failed;
        let mut times = self.descending.iter();
        let enough = |over: u64| over > 0 && over as f64 >= requests * (1.0 - 1e-9);
        if enough(over) {
            return (self.descending.first().map_or(0, |(ns, _)| *ns), over);
        }
        for (_, count) in times.by_ref() {
            over += count;
            if enough(over) {
                break;
            }
        }
        (times.next().map_or(0, |(ns, _)| *ns), over)
    }
}

/// Number of intervals, of slow intervals, and of runs of slow intervals.
#[derive(Debug, Default)]
struct Slow {
    intervals: usize,
    those: usize,
    runs: usize,
}

impl Slow {
    /// Counts intervals slower than `ns`. Intervals without requests neither start nor end a run.
    fn than(blocks: &[Block<'_>], ns: u64) -> Self {
        let mut found = Self::default();
        for block in blocks {
            let mut in_run = false;
            for longest_ns in block.longest_ns.iter().filter(|longest_ns| **longest_ns > 0) {
                let is_slow = *longest_ns > ns;
                found.intervals += 1;
                found.those += usize::from(is_slow);
                found.runs += usize::from(is_slow && !in_run);
                in_run = is_slow;
            }
        }
        found
    }

    fn share(&self) -> f64 {
        self.those as f64 / self.intervals.max(1) as f64
    }

    fn episodes(&self) -> f64 {
        let slow = self.those as f64;
        slow.min(self.runs as f64 / (1.0 - self.share()).max(f64::EPSILON))
    }
}

#[cfg(test)]
#[path = "episodes_tests.rs"]
mod tests;

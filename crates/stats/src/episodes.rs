//! How sure a quantile of times is when what is slow comes in episodes.
//!
//! A stall of a store delays all requests that are due in it, so thousands of slow requests may be
//! a handful of events, or one. Two things follow:
//!
//! - **Episodes** are counted in the longest times of short intervals. An interval is slow where
//!   its longest time is; neighbours that are slow are one episode. By chance alone each of them is
//!   slow with the share s of slow intervals, and would have a neighbour that is not with 1 − s:
//!   runs of slow intervals are divided by that (the runs estimator of the extremal index,
//!   Smith and Weissman, J. R. Statist. Soc. B 56 (1994) 515), so that a median, beyond which every
//!   interval has something, does not rest on one episode. One episode that is longer than the
//!   others counts for more of them: n episodes of which m hold a share w of all slow requests are
//!   worth at most m / w², their effective number (Kish, "Survey sampling", 1965).
//! - **The share** of requests beyond the quantile, not the quantile, has a known error: its ends
//!   are read as quantiles of all requests (Woodruff, J. Amer. Statist. Assoc. 47 (1952) 635). The
//!   error is the greater of that between blocks, by Student's t on logarithms, and that of a
//!   Poisson count of the episodes.

use crate::Histogram;
use crate::student;

/// Effective episodes that an interval needs.
pub const EPISODES_MIN: f64 = 10.0;
/// Measured time that it needs, as the time that requests beyond the quantile had in it: a stall
/// that is rarer than the run is long is in no count, and the shorter the run, the shorter are the
/// stalls that would move the quantile.
pub const BEYOND_S_MIN: f64 = 0.2;

/// Probability that an interval misses on one side, and the normal deviate beyond which it lies.
const TAIL: f64 = 0.025;
const NORMAL: f64 = 1.959_964;
/// Step between the shares of the tail in which a few episodes are looked for.
const STEP: f64 = 1.12;

/// What one block says of a time.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// Times of the requests that were answered.
    pub answered: &'a Histogram,
    /// Requests that failed: slower than any other.
    pub failed: u64,
    /// The longest time in each interval; 0 where there was none, the largest number where one
    /// failed.
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

/// What several blocks say together.
#[derive(Debug)]
pub struct Pooled<'a> {
    blocks: Vec<Block<'a>>,
    tail: Tail,
}

impl<'a> Pooled<'a> {
    /// Of blocks with requests.
    pub fn of(blocks: Vec<Block<'a>>) -> Self {
        let tail = Tail::of(&blocks);
        Self { blocks, tail }
    }

    /// Effective number of episodes that stand behind the quantile `q` of all requests; 0 without
    /// any.
    pub fn episodes(&self, q: f64) -> f64 {
        let beyond = (1.0 - q) * self.tail.requests as f64;
        let (mut least, mut part) = (f64::INFINITY, 1.0);
        // One episode with a smaller part than that leaves enough.
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

    /// Shares of all requests, ascending, between which that beyond the quantile `q` lies, which is
    /// `at_ns`, with 95 % confidence; of two blocks or more.
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
        // Where every interval is slow, their number bounds nothing.
        let episodes = slow.episodes() / (1.0 - slow.share()).max(f64::EPSILON);
        let (least, most) = poisson(episodes);
        let low = (-reach).exp().min(least / episodes);
        let high = reach.exp().max(most / episodes);
        ((1.0 - q) * low, ((1.0 - q) * high).min(1.0))
    }
}

/// Bounds of the mean of a Poisson count (Garwood's, by Wilson and Hilferty's approximation).
fn poisson(count: f64) -> (f64, f64) {
    let bound = |n: f64, z: f64| n * (1.0 - 1.0 / (9.0 * n) + z / (3.0 * n.sqrt())).powi(3);
    (bound(count, -NORMAL).max(0.0), bound(count + 1.0, NORMAL))
}

/// The times of all blocks, descending, with how many requests each has.
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

    /// The slowest requests, at least so many and at least one, with all that are as slow as one of
    /// them: the time that all of them exceed, and their number.
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

/// Intervals, of them slow ones, and runs of those.
#[derive(Debug, Default)]
struct Slow {
    intervals: usize,
    those: usize,
    runs: usize,
}

impl Slow {
    /// Intervals without any request neither begin nor end a run.
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

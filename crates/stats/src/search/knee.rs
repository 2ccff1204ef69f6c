//! The rate at which the share of requests beyond a limit crosses the allowed share.

use std::collections::BTreeMap;

use crate::tail::Batch;

/// Error of the linear model, as a logarithm of the share.
const UNSTRAIGHT: f64 = 0.3;

/// The rate at which a share crosses the allowed share, requests per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Crossing {
    /// Below this rate, the lowest one tried.
    Below(f64),
    At(f64),
    /// Above this rate, the highest one tried.
    Above(f64),
}

impl Crossing {
    pub(super) fn rate(self) -> f64 {
        let (Self::Below(rate) | Self::At(rate) | Self::Above(rate)) = self;
        rate
    }
}

/// Adjacent rates pooled to the same share beyond a limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pool {
    count: Batch,
    /// Mean logarithm of the rates, weighted by requests.
    ln_rate: f64,
}

impl Pool {
    /// The share with half a request added to each kind, so that it has a logarithm.
    pub(super) fn share(&self) -> f64 {
        (self.count.over as f64 + 0.5) / (self.count.requests as f64 + 1.0)
    }

    fn and(&self, other: &Self) -> Self {
        let (own, theirs) = (self.count.requests as f64, other.count.requests as f64);
        Self {
            count: Batch {
                requests: self.count.requests + other.count.requests,
                over: self.count.over + other.count.over,
            },
            ln_rate: (self.ln_rate * own + other.ln_rate * theirs) / (own + theirs),
        }
    }

    /// Weight of its logarithm: the inverse of its variance plus the error of the linear model.
    fn weight(&self) -> f64 {
        1.0 / (1.0 / (self.count.over as f64 + 0.5) + UNSTRAIGHT * UNSTRAIGHT)
    }
}

/// Shares that never fall with the rate: adjacent rates that violate this are pooled (Ayer et al.,
/// "An empirical distribution function for sampling with incomplete information", 1955). The list
/// ends at the first pool with most requests beyond the limit, since shares saturate there.
pub(super) fn monotone(counts: &BTreeMap<u64, Batch>) -> Vec<Pool> {
    let mut pools: Vec<Pool> = Vec::new();
    for (rate, count) in counts.iter().filter(|(_, b)| b.requests > 0) {
        pools.push(Pool { count: *count, ln_rate: (*rate as f64).ln() });
        while let [.., before, after] = &pools[..]
            && before.share() > after.share()
        {
            let both = before.and(after);
            pools.truncate(pools.len() - 2);
            pools.push(both);
        }
    }
    let risen = pools.iter().position(|p| p.share() > 0.5);
    pools.truncate(risen.map_or(pools.len(), |at| at + 1));
    pools
}

/// The rate at which the share equals `allowed`, on the best straight line through the logarithms.
pub(super) fn crossing(counts: &BTreeMap<u64, Batch>, allowed: f64) -> Crossing {
    let lowest = counts.keys().next().map_or(0.0, |rate| *rate as f64);
    let highest = counts.keys().next_back().map_or(f64::INFINITY, |rate| *rate as f64);
    let pools = monotone(counts);
    if pools.iter().all(|p| p.share() <= allowed) {
        return Crossing::Above(highest);
    }
    if pools.iter().all(|p| p.share() > allowed) {
        return Crossing::Below(lowest);
    }
    let sum = |of: &dyn Fn(&Pool) -> f64| pools.iter().map(|p| p.weight() * of(p)).sum::<f64>();
    let weights = sum(&|_| 1.0);
    let (x, y) = (sum(&|p| p.ln_rate) / weights, sum(&|p| p.share().ln()) / weights);
    let rise = sum(&|p| (p.ln_rate - x) * (p.share().ln() - y));
    let slope = rise / sum(&|p| (p.ln_rate - x).powi(2));
    Crossing::At((x + (allowed.ln() - y) / slope).exp().clamp(lowest, highest))
}

//! Where the share of requests beyond a limit crosses what is allowed.

use std::collections::BTreeMap;

use crate::tail::Batch;

/// By how much the logarithm of a share may lie beside the straight line through the others.
const UNSTRAIGHT: f64 = 0.3;

/// Where a share crosses what is allowed, requests per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Crossing {
    /// Below the lowest rate tried, which is this.
    Below(f64),
    At(f64),
    /// Above the highest rate tried, which is this.
    Above(f64),
}

impl Crossing {
    pub(super) fn rate(self) -> f64 {
        let (Self::Below(rate) | Self::At(rate) | Self::Above(rate)) = self;
        rate
    }
}

/// Rates at which the same share is beyond a limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pool {
    count: Batch,
    /// Mean logarithm of their rates, by requests.
    ln_rate: f64,
}

impl Pool {
    /// Half a request more of each kind: a share of none has no logarithm.
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

    /// How far its logarithm can be trusted: it spreads by chance, and a straight line is only
    /// nearly right.
    fn weight(&self) -> f64 {
        1.0 / (1.0 / (self.count.over as f64 + 0.5) + UNSTRAIGHT * UNSTRAIGHT)
    }
}

/// Shares that do not fall with the rate: neighbours that would are taken together (Ayer and
/// others, "An empirical distribution function for sampling with incomplete information", 1955).
/// It ends with the first at which most requests are beyond the limit: there shares rise no more.
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

/// Where the share is what is allowed, on the straight line that fits the logarithms best.
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

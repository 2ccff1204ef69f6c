//! The knee: where a store stops keeping up when its load rises in stages, by an explicit rule.
//!
//! A stage passes if the store answered the offered load. Under an open load that is at least
//! [`OPEN_SHARE`] of the requests due; under a closed load at least [`CLOSED_SHARE`] of the rate
//! that as many clients would reach at the pace of the lowest stages. The latter follows from
//! Little's law (Little, "A proof for the queuing formula L = λW", 1961): N clients with a cycle of
//! think time and response time W finish N/W cycles per second, and the lowest stages give 1/W. In
//! addition, fewer than [`ERROR_SHARE`] of the requests may fail.
//!
//! On the way up, the knee lies between the two adjacent stages for which the fewest stages
//! contradict it: stages below that fail and stages above that pass. This is the maximum likelihood
//! position if every stage is misjudged with the same probability regardless of its rate, as by
//! pauses of the machine (the fit of a step, the simplest case of Barlow, Bartholomew, Bremner and
//! Brunk, "Statistical inference under order restrictions", 1972). With ties the lowest position
//! wins, so that a failed stage is forgiven only if two higher ones pass.

/// Open load: share of the requests due that a stage must answer to pass.
pub const OPEN_SHARE: f64 = 0.99;
/// Closed load: share of the rate at the lowest stages' pace that a stage must reach to pass.
/// Lower, because response times rise gradually, and clients slow down long before the store is
/// saturated.
pub const CLOSED_SHARE: f64 = 0.95;
/// Share of failed requests at which a stage fails.
pub const ERROR_SHARE: f64 = 0.001;
/// Number of lowest stages that give a client's unloaded pace.
const LOWEST: usize = 3;
/// Standard deviations allowed for chance.
const CHANCE: f64 = 3.0;

/// A stage of a ramp, as input of the rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    /// Expected rate, requests per second; see [`Stage::open`] and [`Stage::closed`].
    pub asked_per_s: f64,
    /// Answered requests per second.
    pub answered_per_s: f64,
    /// Share of failed requests, 0 to 1.
    pub error_share: f64,
    /// Minimum answered rate to pass, requests per second.
    needed_per_s: f64,
}

impl Stage {
    /// A stage of an open load: `due` and `answered` requests in `seconds`, above 0. Both are
    /// counted in intervals of `interval_s`, so requests of one interval may be missing by chance.
    pub fn open(due: f64, answered: f64, seconds: f64, interval_s: f64, error_share: f64) -> Self {
        let by_chance = CHANCE * (due / seconds * interval_s).sqrt();
        let needed = due - (due * (1.0 - OPEN_SHARE)).max(by_chance);
        Self {
            asked_per_s: due / seconds,
            answered_per_s: answered / seconds,
            error_share,
            needed_per_s: needed / seconds,
        }
    }

    /// A stage of a closed load of `clients`, each with an unloaded [`pace`] of `pace` requests per
    /// second.
    pub fn closed(clients: f64, pace: f64, answered_per_s: f64, error_share: f64) -> Self {
        let asked_per_s = clients * pace;
        let needed_per_s = asked_per_s * CLOSED_SHARE;
        Self { asked_per_s, answered_per_s, error_share, needed_per_s }
    }

    /// True if the store kept up.
    pub fn holds(&self) -> bool {
        self.answered_per_s > 0.0
            && self.answered_per_s >= self.needed_per_s
            && self.error_share < ERROR_SHARE
    }
}

/// Unloaded rate of one client, requests per second: the median over the three stages with the
/// fewest clients. `stages` are pairs (clients, answered requests per second) in any order; stages
/// without clients are ignored. `None` if there is no other stage.
pub fn pace(stages: &[(f64, f64)]) -> Option<f64> {
    let mut lowest: Vec<(f64, f64)> = stages
        .iter()
        .copied()
        .filter(|(clients, answered)| *clients > 0.0 && *answered > 0.0)
        .collect();
    lowest.sort_by(|a, b| a.0.total_cmp(&b.0));
    lowest.truncate(LOWEST);
    let mut paces: Vec<f64> = lowest.iter().map(|(clients, answered)| answered / clients).collect();
    paces.sort_by(f64::total_cmp);
    paces.get(paces.len() / 2).copied()
}

/// The direction of a ramp to which a stage belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// Up to the highest stage. Also used for stages in random order.
    Up,
    /// Down from the highest stage.
    Down,
}

/// The direction of each stage. `planned` are rates or numbers of clients in order of time. Only a
/// ramp that rises to a single maximum and then falls has both directions.
pub fn ways(planned: &[f64]) -> Vec<Way> {
    let highest = planned.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let top = planned.iter().position(|p| *p >= highest).unwrap_or(0);
    let rises = planned[..top].is_sorted();
    let falls = planned[top.min(planned.len())..].is_sorted_by(|a, b| a >= b);
    let there_and_back = rises && falls && planned.last().is_some_and(|last| *last < highest);
    let way = |i| if there_and_back && i > top { Way::Down } else { Way::Up };
    (0..planned.len()).map(way).collect()
}

/// The knee among stages in ascending order of the expected rate, as indices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Knee {
    /// The passing stage below the knee; `None` if the knee is below all stages.
    pub held: Option<usize>,
    /// The failing stage above the knee; `None` if the knee is above all stages.
    pub missed: Option<usize>,
    /// Number of stages that contradict the knee, because something other than the load disturbed
    /// them.
    pub against: usize,
}

/// Finds the knee among stages in ascending order.
pub fn knee(stages: &[Stage]) -> Knee {
    let holds: Vec<bool> = stages.iter().map(Stage::holds).collect();
    let (below, against) = turning(&holds);
    let missed = (below < stages.len()).then_some(below);
    Knee { held: below.checked_sub(1), missed, against }
}

/// Index of the last of `times` before they exceed `limit`, found by the rule of the knee; `None`
/// if they exceed it from the start. An unknown time counts as above the limit.
pub fn within(times: &[Option<f64>], limit: f64) -> Option<usize> {
    let kept: Vec<bool> = times.iter().map(|time| time.is_some_and(|time| time < limit)).collect();
    turning(&kept).0.checked_sub(1)
}

/// Best split of `values` into `true` ones followed by `false` ones: its position, and the number
/// of values on the wrong side.
pub(crate) fn turning(values: &[bool]) -> (usize, usize) {
    let mut against = values.iter().filter(|value| **value).count();
    let mut best = (0, against);
    for (i, value) in values.iter().enumerate() {
        against = if *value { against - 1 } else { against + 1 };
        if against < best.1 {
            best = (i + 1, against);
        }
    }
    best
}

/// Interpolates a value at `rate`: linear between the two nearest measured rates, on logarithms of
/// the values. Points are pairs (rate, value above 0) in any order. `None` outside the measured
/// rates.
pub fn value_at(points: &[(f64, f64)], rate: f64) -> Option<f64> {
    let mut points: Vec<(f64, f64)> =
        points.iter().copied().filter(|(rate, value)| rate.is_finite() && *value > 0.0).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let above = points.iter().position(|(at, _)| *at >= rate)?;
    let (high, value) = points[above];
    if high <= rate {
        return Some(value);
    }
    let (low, lower) = points[above.checked_sub(1)?];
    let share = (rate - low) / (high - low);
    Some((lower.ln() + share * (value.ln() - lower.ln())).exp())
}

#[cfg(test)]
mod tests;

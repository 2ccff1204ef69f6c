//! Where a store breaks when its load is raised in stages: the knee, by a stated rule.
//!
//! A stage holds when the store answered what it was asked for: at least [`OPEN_SHARE`] of what was
//! due under an open load; under a closed one at least [`CLOSED_SHARE`] of what as many clients
//! would get if each were served as at the lowest stages. The latter follows from Little's law
//! (Little, "A proof for the queuing formula L = λW", 1961): N clients whose cycle of thinking and
//! being served lasts W finish N/W cycles a second, and the lowest stages tell 1/W. Besides, fewer
//! than [`ERROR_SHARE`] of the requests may fail.
//!
//! On the way up the knee lies between two neighbouring stages: where the fewest stages contradict
//! it, those below that do not hold and those above that do. That is the likeliest place where each
//! stage goes wrong with the same probability whatever its rate, as it does when a machine pauses
//! (the fit of a step, the simplest case of Barlow, Bartholomew, Bremner and Brunk, "Statistical
//! inference under order restrictions", 1972). Of several such places it is the lowest, so that a
//! single stage counts as a stumble only where two higher ones hold.

/// Share of what was due that must be answered within a stage of an open load.
pub const OPEN_SHARE: f64 = 0.99;
/// The same share of what clients would get at the lowest stages' pace, of a closed load. Times
/// rise smoothly as a store fills up, so clients slow down a little long before it is full.
pub const CLOSED_SHARE: f64 = 0.95;
/// Share of requests of which fewer may fail.
pub const ERROR_SHARE: f64 = 0.001;
/// How many of the lowest stages tell the pace of a client at rest.
const LOWEST: usize = 3;
/// How many standard deviations are put down to chance.
const CHANCE: f64 = 3.0;

/// A stage of a ramp as the rule looks at it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    /// Requests a second that were asked for, see [`Stage::open`] and [`Stage::closed`].
    pub asked_per_s: f64,
    /// Requests a second that were answered in the stage.
    pub answered_per_s: f64,
    /// Share of the requests that failed, 0 to 1.
    pub error_share: f64,
    /// Fewest answers a second with which it holds.
    needed_per_s: f64,
}

impl Stage {
    /// Of an open load: `due` requests and `answered` ones in `seconds`, above 0. Both are counted
    /// in intervals of `interval_s`, so that those of one interval may be missing by chance.
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

    /// Of a closed load of `clients`, each of which finishes `pace` requests a second at rest
    /// ([`pace`]).
    pub fn closed(clients: f64, pace: f64, answered_per_s: f64, error_share: f64) -> Self {
        let asked_per_s = clients * pace;
        let needed_per_s = asked_per_s * CLOSED_SHARE;
        Self { asked_per_s, answered_per_s, error_share, needed_per_s }
    }

    /// Whether the store kept up.
    pub fn holds(&self) -> bool {
        self.answered_per_s > 0.0
            && self.answered_per_s >= self.needed_per_s
            && self.error_share < ERROR_SHARE
    }
}

/// Requests a second of one client at rest: the median over the three stages with the fewest
/// clients of all that have any. `stages` are numbers of clients and requests answered a second,
/// in any order; `None` without such a stage.
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

/// Which way a stage is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// Up to the highest stage, or neither up nor down: stages in a shuffled order.
    Up,
    /// Down from it.
    Down,
}

/// The way that each stage is a part of; `planned` are rates or numbers of clients in the order of
/// time. Stages that rise to one height and then fall have both ways, all others are on the way up.
pub fn ways(planned: &[f64]) -> Vec<Way> {
    let highest = planned.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let top = planned.iter().position(|p| *p >= highest).unwrap_or(0);
    let rises = planned[..top].is_sorted();
    let falls = planned[top.min(planned.len())..].is_sorted_by(|a, b| a >= b);
    let there_and_back = rises && falls && planned.last().is_some_and(|last| *last < highest);
    let way = |i| if there_and_back && i > top { Way::Down } else { Way::Up };
    (0..planned.len()).map(way).collect()
}

/// What stages on the way up say, which are given in rising order of what was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Knee {
    /// The stage below the knee, which holds; `None` where the knee is below all.
    pub held: Option<usize>,
    /// The stage above it, which does not hold; `None` where the knee is above all.
    pub missed: Option<usize>,
    /// How many stages contradict it: something else than the load disturbed them.
    pub against: usize,
}

/// The knee among stages in rising order.
pub fn knee(stages: &[Stage]) -> Knee {
    let holds: Vec<bool> = stages.iter().map(Stage::holds).collect();
    let (below, against) = turning(&holds);
    let missed = (below < stages.len()).then_some(below);
    Knee { held: below.checked_sub(1), missed, against }
}

/// The last of `times` below the point from which on they are not below `limit`, found as the knee
/// is; `None` where that point is below all. A time that is not known is not below any limit.
pub fn within(times: &[Option<f64>], limit: f64) -> Option<usize> {
    let kept: Vec<bool> = times.iter().map(|time| time.is_some_and(|time| time < limit)).collect();
    turning(&kept).0.checked_sub(1)
}

/// How many of the first values are best taken for true and all others for false, and how many
/// are then on the wrong side.
fn turning(values: &[bool]) -> (usize, usize) {
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

/// A value at `rate`, between values that were measured at other rates: by a straight line between
/// the two that are next to it, on logarithms of the values. Points are pairs of a rate and a value
/// above 0 in any order; `None` below the lowest rate, above the highest and without points.
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

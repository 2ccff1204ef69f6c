//! The load at which one of two stores overtakes the other.
//!
//! At each load the ratio of their speeds is known. The position is the one that the fewest loads
//! contradict: ratios of 1 or more below it, and less than 1 above it. This is the rule of the
//! [knee](crate::knee). Between the two loads around it, the logarithm of the ratio is interpolated
//! linearly in the logarithm of the load.

use crate::knee::turning;

/// The position of a crossover, found by [`crossover`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Crossing {
    /// The ratio is at least 1 from this load on, the lowest measured.
    AtMost(f64),
    /// The ratio is 1 at this load.
    At(f64),
    /// The ratio is below 1 up to this load, the highest measured.
    Above(f64),
}

impl Crossing {
    /// The load, or the nearest measured one.
    pub fn load(self) -> f64 {
        match self {
            Self::AtMost(load) | Self::At(load) | Self::Above(load) => load,
        }
    }
}

/// Finds where a ratio passes 1. `points` are pairs (load, ratio), both above 0, in ascending order
/// of the load. `None` without points.
pub fn crossover(points: &[(f64, f64)]) -> Option<Crossing> {
    let (first, last) = (points.first()?, points.last()?);
    let behind: Vec<bool> = points.iter().map(|(_, ratio)| *ratio < 1.0).collect();
    let (above, _) = turning(&behind);
    let Some(below) = above.checked_sub(1) else { return Some(Crossing::AtMost(first.0)) };
    let Some((high, over)) = points.get(above) else { return Some(Crossing::Above(last.0)) };
    let (low, under) = points[below];
    let (under, over) = (under.ln(), over.ln());
    // Next to a load that contradicts the position, the ratios do not enclose 1.
    let share = if under < 0.0 && over > 0.0 { under / (under - over) } else { 0.5 };
    Some(Crossing::At((low.ln() + share * (high.ln() - low.ln())).exp()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_interpolated_between_two_loads() {
        let Some(Crossing::At(at)) = crossover(&[(1.0, 0.5), (2.0, 0.5), (4.0, 2.0), (8.0, 3.0)])
        else {
            panic!("no crossing")
        };
        assert!((at - 8f64.sqrt()).abs() < 1e-9, "{at}: halfway between 2 and 4 in logarithms");
        let near = crossover(&[(1.0, 0.8), (2.0, 1.0), (4.0, 2.0)]);
        assert_eq!(near.map(Crossing::load).map(f64::round), Some(1.0));
    }

    #[test]
    fn without_a_change_it_is_a_bound() {
        assert_eq!(crossover(&[(1.0, 1.1), (8.0, 2.0)]), Some(Crossing::AtMost(1.0)));
        assert_eq!(crossover(&[(1.0, 0.9), (8.0, 0.7)]), Some(Crossing::Above(8.0)));
        assert_eq!(crossover(&[]), None);
    }

    #[test]
    fn one_load_against_all_others_is_ignored() {
        let found = crossover(&[(1.0, 0.5), (2.0, 1.1), (4.0, 0.7), (8.0, 0.8), (16.0, 2.0)]);
        let Some(Crossing::At(at)) = found else { panic!("{found:?}") };
        assert!((8.0..16.0).contains(&at), "{at}");
    }
}

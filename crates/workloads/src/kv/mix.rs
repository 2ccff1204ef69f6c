//! Operations with weights, and the operations that insert keys.

use stats::SplitMix64;
use std::fmt;
use std::str::FromStr;

use super::KvError;

/// Draws one of several items by weight.
///
/// The alias method (Walker 1977, in the form of Vose 1991): each item has a column of equal
/// probability, which it may share with one other item. A pick takes one draw and one comparison,
/// however many items there are.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    columns: Vec<Column>,
    /// Weights that add up to 1.
    shares: Vec<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Column {
    /// The item's own part of its column, in 2⁻⁶⁴.
    own: u64,
    /// The item that has the remaining part.
    other: usize,
}

impl Mix {
    /// Items 0, 1, … with probabilities proportional to `weights`.
    ///
    /// Errors: a weight that is negative or not finite, or none above 0.
    pub fn new(weights: &[f64]) -> Result<Self, KvError> {
        if let Some(wrong) = weights.iter().find(|w| !w.is_finite() || **w < 0.0) {
            return Err(KvError(format!("`{wrong}` is not a weight, expected a number from 0")));
        }
        // Divided by the largest first: the sum of finite weights may be infinite.
        let largest = weights.iter().copied().fold(0.0, f64::max);
        if largest <= 0.0 {
            return Err(KvError("no weight is above 0, expected at least one".into()));
        }
        let sum: f64 = weights.iter().map(|w| w / largest).sum();
        let shares: Vec<f64> = weights.iter().map(|w| w / largest / sum).collect();
        Ok(Self { columns: columns(&shares), shares })
    }

    /// Picks an item; returns its index.
    #[inline]
    pub fn pick(&self, random: &mut SplitMix64) -> usize {
        // The upper half is the column, the lower half the position in it.
        let place = u128::from(random.next_u64()) * self.columns.len() as u128;
        let index = (place >> 64) as usize;
        let column = self.columns[index];
        if (place as u64) < column.own { index } else { column.other }
    }

    /// Probabilities of the items.
    pub fn shares(&self) -> &[f64] {
        &self.shares
    }
}

/// Fills low columns from items that are too high. Columns left over at the end are full except for
/// rounding.
fn columns(shares: &[f64]) -> Vec<Column> {
    let count = shares.len() as f64;
    let mut heights: Vec<f64> = shares.iter().map(|s| s * count).collect();
    let (mut low, mut high): (Vec<usize>, Vec<usize>) =
        (0..heights.len()).partition(|i| heights[*i] < 1.0);
    let mut columns: Vec<Column> =
        (0..heights.len()).map(|i| Column { own: u64::MAX, other: i }).collect();
    while let (Some(to), Some(from)) = (low.pop(), high.pop()) {
        let own = (heights[to] * 2f64.powi(64)) as u64;
        columns[to] = Column { own, other: from };
        heights[from] -= 1.0 - heights[to];
        if heights[from] < 1.0 { low.push(from) } else { high.push(from) }
    }
    columns
}

/// Example of weights for errors.
const EXAMPLE: &str = ": for example get=0.9,set=0.1";

/// Names with weights, such as `get=0.9,set=0.1`; a name without a weight has weight 1.
///
/// Weights need not add up to 1. There is at least one name, no name occurs twice, and at least one
/// weight is above 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights(Vec<(String, f64)>);

impl Weights {
    /// Names with their weights, in the order given.
    pub fn pairs(&self) -> &[(String, f64)] {
        &self.0
    }

    /// A mix of the names' indices.
    ///
    /// # Panics
    /// Never, because parsing refuses weights that cannot be drawn from.
    pub fn mix(&self) -> Mix {
        let weights: Vec<f64> = self.0.iter().map(|(_, weight)| *weight).collect();
        Mix::new(&weights).expect("weights were checked when they were read")
    }
}

impl FromStr for Weights {
    type Err = KvError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut pairs: Vec<(String, f64)> = Vec::new();
        let mut at = 1;
        let has_weights = text.contains('=');
        for part in text.split(',') {
            let (name, weight) = weighted(text, part, at)?;
            if has_weights && !part.contains('=') {
                let problem = "has no weight although others do";
                return Err(KvError(format!(
                    "`{part}` at character {at} of `{text}` {problem}, expected NAME=WEIGHT \
                     for all or for none{EXAMPLE}"
                )));
            }
            if pairs.iter().any(|(known, _)| *known == name) {
                let problem = "occurs twice, expected each name once";
                return Err(KvError(format!("`{name}` at character {at} of `{text}` {problem}")));
            }
            pairs.push((name, weight));
            at += part.chars().count() + 1;
        }
        if pairs.iter().all(|(_, weight)| *weight <= 0.0) {
            return Err(KvError(format!(
                "`{text}` has no weight above 0, expected at least one{EXAMPLE}"
            )));
        }
        Ok(Self(pairs))
    }
}

/// Name and weight of a part that starts at character `at`.
fn weighted(text: &str, part: &str, at: usize) -> Result<(String, f64), KvError> {
    let (name, weight) = match part.rsplit_once('=') {
        Some((name, weight)) => (name, Some(weight)),
        None => (part, None),
    };
    if name.trim().is_empty() {
        return Err(KvError(format!(
            "`{part}` at character {at} of `{text}` has no name, expected NAME=WEIGHT{EXAMPLE}"
        )));
    }
    let Some(weight) = weight else { return Ok((name.trim().to_owned(), 1.0)) };
    let parsed = weight.trim().parse::<f64>().ok().filter(|w| w.is_finite() && *w >= 0.0);
    let parsed = parsed.ok_or_else(|| {
        let at = at + name.chars().count() + 1;
        let problem = "is not a weight, expected a number from 0";
        KvError(format!("`{weight}` at character {at} of `{text}` {problem}{EXAMPLE}"))
    })?;
    Ok((name.trim().to_owned(), parsed))
}

impl fmt::Display for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, weight)) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}{name}={weight}")?;
        }
        Ok(())
    }
}

/// Selects the operations of a sequence that insert a key, evenly spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inserts {
    /// Inserts in 2⁶⁴ operations.
    rate: u128,
}

impl Inserts {
    /// Inserts a key in a `share` of the operations, from 0 to 1.
    pub fn new(share: f64) -> Self {
        debug_assert!((0.0..=1.0).contains(&share), "{share} is not a share");
        Self { rate: (share * 2f64.powi(64)) as u128 }
    }

    /// Number of inserts before operation `n`; `None` if it is not an insert.
    #[inline]
    pub fn ordinal(&self, n: u64) -> Option<u64> {
        let before = self.before(n);
        (self.before(n + 1) > before).then_some(before)
    }

    /// Number of inserts among operations 0 to `n` − 1.
    fn before(&self, n: u64) -> u64 {
        ((u128::from(n) * self.rate) >> 64) as u64
    }
}

#[cfg(test)]
#[path = "mix_tests.rs"]
mod tests;

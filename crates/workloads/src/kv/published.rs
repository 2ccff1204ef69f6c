//! Length distributions from papers.
//!
//! ETC is the largest of the five memcached pools at Facebook in Atikoglu, Xu, Frachtenberg, Jiang
//! and Paleczny: Workload Analysis of a Large-Scale Key-Value Store, SIGMETRICS 2012. The paper
//! fits a generalised extreme value distribution to the length of keys. For values it gives a table
//! of lengths up to 14 bytes and fits a generalised Pareto distribution from 15 bytes on.

use stats::SplitMix64;

/// A published length distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Published {
    /// Values of ETC.
    EtcValues,
    /// Keys of ETC.
    EtcKeys,
}

/// Probabilities of ETC values of 0, 1, … 14 bytes; their sum is 0.44155.
const ETC_SMALL: [f64; 15] = [
    0.00536, 0.00047, 0.17820, 0.09239, 0.00018, 0.02740, 0.00065, 0.00606, 0.00023, 0.00837,
    0.00837, 0.08989, 0.00092, 0.00326, 0.01980,
];
/// Longer values: location, scale and shape of the Pareto distribution, in bytes.
const ETC_LARGE: (f64, f64, f64) = (15.0, 214.476, 0.348_238);
/// Length limit of values, which one in 10⁹ would exceed. A memcached with default settings accepts
/// 1 MiB including the key and its item header.
const ETC_MAX: usize = 1_000_000;
/// Keys: location, scale and shape of the generalized extreme value distribution, in bytes.
const ETC_KEYS: (f64, f64, f64) = (30.7984, 8.204_49, 0.078_688);
/// Length limit of keys in memcached's protocol, which one in 10⁶ would exceed.
const KEY_MAX: usize = 250;

impl Published {
    /// All published distributions.
    pub(super) const ALL: [Self; 2] = [Self::EtcValues, Self::EtcKeys];

    /// The name that users type.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::EtcValues => "etc",
            Self::EtcKeys => "etc-keys",
        }
    }

    /// The shortest length.
    pub(super) fn min(self) -> usize {
        match self {
            Self::EtcValues => 0,
            Self::EtcKeys => 1,
        }
    }

    /// The longest length.
    pub(super) fn max(self) -> usize {
        match self {
            Self::EtcValues => ETC_MAX,
            Self::EtcKeys => KEY_MAX,
        }
    }

    /// Draws a length.
    pub(super) fn bytes(self, random: &mut SplitMix64) -> usize {
        match self {
            Self::EtcValues => etc_value(random.unit()),
            Self::EtcKeys => etc_key(random.unit()),
        }
    }

    /// The mean of drawn lengths, in bytes.
    pub(super) fn mean(self) -> f64 {
        match self {
            Self::EtcValues => {
                let small: f64 = (0..).zip(ETC_SMALL).map(|(n, p)| f64::from(n) * p).sum();
                let (from, scale, shape) = ETC_LARGE;
                // Truncation to whole bytes lowers the mean by half a byte, and by a twelfth of the
                // density at the lower end less (the next term of the Euler–Maclaurin formula).
                let large = from + scale / (1.0 - shape) - 0.5 + 1.0 / (12.0 * scale);
                small + (1.0 - ETC_SMALL.iter().sum::<f64>()) * large
            }
            // The sum of the probabilities that a key is longer than 0, 1, … bytes.
            Self::EtcKeys => {
                1.0 + (1..KEY_MAX).map(|n| 1.0 - etc_keys_below(n as f64 + 0.5)).sum::<f64>()
            }
        }
    }
}

/// The `u`-quantile of the length of ETC values.
fn etc_value(u: f64) -> usize {
    let mut left = u;
    for (bytes, share) in ETC_SMALL.iter().enumerate() {
        if left < *share {
            return bytes;
        }
        left -= share;
    }
    let (from, scale, shape) = ETC_LARGE;
    let above = ((1.0 - u) / (1.0 - ETC_SMALL.iter().sum::<f64>())).min(1.0);
    let bytes = from + scale / shape * (above.powf(-shape) - 1.0);
    (bytes as usize).min(ETC_MAX)
}

/// The `u`-quantile of the length of ETC keys.
fn etc_key(u: f64) -> usize {
    let (middle, scale, shape) = ETC_KEYS;
    let bytes = middle + scale / shape * ((-u.ln()).powf(-shape) - 1.0);
    (bytes.round() as usize).clamp(1, KEY_MAX)
}

/// Share of ETC keys that are shorter than `bytes`, which is within the distribution's support.
fn etc_keys_below(bytes: f64) -> f64 {
    let (middle, scale, shape) = ETC_KEYS;
    let base = 1.0 + shape * (bytes - middle) / scale;
    (-base.max(0.0).powf(-1.0 / shape)).exp()
}

#[cfg(test)]
#[path = "published_tests.rs"]
mod tests;

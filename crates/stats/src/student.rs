//! Mean, standard error and Student's t of a few numbers.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Logarithms closer than this are equal up to rounding: one part in 10¹² of the values.
const ROUNDING: f64 = 1e-12;

/// Moments of a sample for Student's t-test.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moments {
    /// Arithmetic mean.
    pub(crate) mean: f64,
    /// Standard error of the mean; exactly 0 if all values are equal up to rounding.
    pub(crate) error: f64,
    /// Number of values.
    pub(crate) n: usize,
}

impl Moments {
    /// Moments of at least one value; the error of a single value is 0.
    pub(crate) fn of(values: &[f64]) -> Self {
        let n = values.len();
        let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if largest - smallest <= ROUNDING {
            return Self { mean: smallest.midpoint(largest), error: 0.0, n };
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        Self { mean, error: (squares / (n as f64 - 1.0) / n as f64).sqrt(), n }
    }

    /// Distance of the mean above `edge` in standard errors. If the error is 0 it is infinite, with
    /// the sign of the distance, or 0 if the distance is 0.
    pub(crate) fn t_above(&self, edge: f64) -> f64 {
        let distance = self.mean - edge;
        if distance.abs() <= ROUNDING { 0.0 } else { distance / self.error }
    }

    /// Degrees of freedom: n − 1, at least 1.
    pub(crate) fn freedom(&self) -> f64 {
        (self.n as f64 - 1.0).max(1.0)
    }
}

/// Student's t distribution with `freedom` degrees of freedom, at least 1.
fn student(freedom: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, freedom).expect("location 0, scale 1 and freedom >= 1 are valid")
}

/// The value that Student's t exceeds with probability `tail` (between 0 and 0.5, both excluded).
pub(crate) fn critical(tail: f64, freedom: f64) -> f64 {
    student(freedom).inverse_cdf(1.0 - tail)
}

/// Probability that Student's t exceeds `t`; `t` may be infinite.
pub(crate) fn upper_tail(t: f64, freedom: f64) -> f64 {
    if t.is_infinite() {
        return if t > 0.0 { 0.0 } else { 1.0 };
    }
    student(freedom).sf(t)
}

/// Factor by which to widen 95 % intervals of normal deviates so that all `comparisons` of them
/// hold jointly with 95 % (Bonferroni).
pub fn widening(comparisons: usize) -> f64 {
    let normal = Normal::standard();
    let z = |tails: f64| normal.inverse_cdf(1.0 - 0.025 / tails);
    z(comparisons.max(1) as f64) / z(1.0)
}

/// Probability that a normal deviate lies below `-z`.
pub(crate) fn normal_tail(z: f64) -> f64 {
    Normal::standard().cdf(-z)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables of Student's t (for example NIST/SEMATECH e-Handbook, 1.3.6.7.2).
    #[test]
    fn critical_values_match_the_tables() {
        let table = [
            (0.025, 1.0, 12.706_20),
            (0.025, 2.0, 4.302_65),
            (0.025, 4.0, 2.776_45),
            (0.025, 7.0, 2.364_62),
            (0.005, 5.0, 4.032_14),
            (0.001, 3.0, 10.214_53),
            (0.05, 30.0, 1.697_26),
        ];
        for (tail, freedom, expected) in table {
            let got = critical(tail, freedom);
            assert!((got / expected - 1.0).abs() < 1e-5, "{got} for {tail}, {freedom}");
            assert!((upper_tail(got, freedom) / tail - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn critical_values_and_tails_are_inverse() {
        for freedom in [1.0, 2.0, 3.0, 5.0, 9.0, 29.0, 500.0] {
            for tail in [0.25, 0.05, 0.025, 0.001, 1e-5, 2.5e-7] {
                let back = upper_tail(critical(tail, freedom), freedom);
                assert!((back / tail - 1.0).abs() < 1e-4, "{back} for {tail}, {freedom}");
            }
        }
    }

    #[test]
    fn infinite_and_zero_distances_do_not_divide_by_zero() {
        let tails = (upper_tail(f64::INFINITY, 2.0), upper_tail(f64::NEG_INFINITY, 2.0));
        assert_eq!(tails, (0.0, 1.0));
        let same = Moments::of(&[0.1, 0.1, 0.1]);
        assert_eq!((same.mean, same.error), (0.1, 0.0));
        let ts = (same.t_above(0.1), same.t_above(0.0), same.t_above(0.2));
        assert_eq!(ts, (0.0, f64::INFINITY, f64::NEG_INFINITY));
    }

    #[test]
    fn moments_match_a_manual_calculation() {
        let m = Moments::of(&[1.0, 2.0, 3.0, 6.0]);
        assert!((m.mean - 3.0).abs() < 1e-12);
        assert!((m.error - (14.0f64 / 3.0 / 4.0).sqrt()).abs() < 1e-12);
        assert!((m.freedom() - 3.0).abs() < 1e-12);
    }

    #[test]
    fn more_comparisons_widen_an_interval() {
        assert!((widening(1) - 1.0).abs() < 1e-12 && (widening(0) - 1.0).abs() < 1e-12);
        // z of 1 - 0.025 / 10 is 2.807.
        assert!((widening(10) - 2.807_03 / 1.959_96).abs() < 1e-4, "{}", widening(10));
    }

    #[test]
    fn the_normal_tail_matches_the_tables() {
        assert!((normal_tail(1.959_964) - 0.025).abs() < 1e-6);
        assert!((normal_tail(0.0) - 0.5).abs() < 1e-9);
    }
}

//! Comparison of drawn counts with their probabilities, for tests.

/// Pearson's χ² of `counts` against `probabilities`, and its degrees of freedom. Neighbouring
/// entries are pooled until at least ten are expected.
pub(super) fn chi_square(counts: &[u64], probabilities: &[f64]) -> (f64, f64) {
    assert_eq!(counts.len(), probabilities.len());
    let total: u64 = counts.iter().sum();
    let (mut statistic, mut groups) = (0.0, 0.0);
    let (mut observed, mut expected) = (0.0, 0.0);
    let mut left = total as f64;
    for (count, probability) in counts.iter().zip(probabilities) {
        observed += *count as f64;
        expected += probability * total as f64;
        left -= probability * total as f64;
        if expected >= 10.0 && left >= 10.0 {
            statistic += (observed - expected).powi(2) / expected;
            groups += 1.0;
            (observed, expected) = (0.0, 0.0);
        }
    }
    if expected > 0.0 {
        statistic += (observed - expected).powi(2) / expected;
        groups += 1.0;
    }
    (statistic, f64::max(groups - 1.0, 1.0))
}

/// The value that χ² exceeds less than once in 10⁵ times (Wilson and Hilferty 1931: its cube root
/// is approximately normal).
pub(super) fn bound(freedom: f64) -> f64 {
    let part = 2.0 / (9.0 * freedom);
    freedom * (1.0 - part + 4.3 * part.sqrt()).powi(3)
}

/// Fails unless `counts` are plausible draws from `probabilities`.
#[track_caller]
pub(super) fn assert_drawn(counts: &[u64], probabilities: &[f64], what: &str) {
    let (statistic, freedom) = chi_square(counts, probabilities);
    let bound = bound(freedom);
    assert!(statistic < bound, "{what}: {statistic:.1} with {freedom} degrees, bound {bound:.1}");
}

/// Mean and standard deviation.
pub(super) fn moments(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for value in values {
        count += 1.0;
        sum += value;
        squares += value * value;
    }
    let mean = sum / count;
    (mean, (squares / count - mean * mean).sqrt())
}

#[test]
fn fair_counts_pass_and_biased_ones_fail() {
    let fair = [0.25; 4];
    assert_drawn(&[25_100, 24_900, 25_050, 24_950], &fair, "fair");
    let (statistic, freedom) = chi_square(&[26_000, 24_000, 25_000, 25_000], &fair);
    assert!(statistic > bound(freedom), "{statistic}");
    // From tables: with 3 degrees of freedom it exceeds 25.9 once in 10⁵ times; with 100, 172.
    assert!((25.9..28.5).contains(&bound(3.0)), "{}", bound(3.0));
    assert!((171.0..176.0).contains(&bound(100.0)), "{}", bound(100.0));
}

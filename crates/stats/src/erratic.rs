//! How erratic a rate is over time.

/// Fewest windows that tell anything.
const WINDOWS_MIN: usize = 4;
/// A window is slow if its rate is below this share of the median.
pub const SLOW_SHARE: f64 = 0.1;

/// Variation of a rate over windows of equal length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Erratic {
    /// Standard deviation of the rate divided by its mean (coefficient of variation).
    pub variation: f64,
    /// Share of windows with a rate below [`SLOW_SHARE`] of the median.
    pub slow_share: f64,
}

/// Analyzes operations in consecutive intervals of `interval_ns`, added up to windows of
/// `window_ns`; an incomplete last window is left out.
///
/// `None` with fewer than four windows, or without operations in them.
pub fn erratic(counts: &[u64], interval_ns: u64, window_ns: u64) -> Option<Erratic> {
    let per_window = (window_ns / interval_ns.max(1)).max(1) as usize;
    let windows = counts.chunks_exact(per_window).map(|window| window.iter().sum::<u64>() as f64);
    let mut windows: Vec<f64> = windows.collect();
    let n = windows.len() as f64;
    let mean = windows.iter().sum::<f64>() / n;
    if windows.len() < WINDOWS_MIN || mean <= 0.0 {
        return None;
    }
    let squares = windows.iter().map(|count| (count - mean).powi(2)).sum::<f64>();
    windows.sort_by(f64::total_cmp);
    let (low, high) = (windows[(windows.len() - 1) / 2], windows[windows.len() / 2]);
    let limit = SLOW_SHARE * f64::midpoint(low, high);
    let slow = windows.iter().filter(|count| **count < limit).count();
    Some(Erratic { variation: (squares / (n - 1.0)).sqrt() / mean, slow_share: slow as f64 / n })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_rate_does_not_vary() {
        let steady = erratic(&[5; 80], 100, 1_000);
        assert_eq!(steady, Some(Erratic { variation: 0.0, slow_share: 0.0 }));
    }

    #[test]
    fn slow_windows_are_a_share_of_all_complete_ones() {
        // Windows of 10, 10, 0, 10 and 10 operations, and an incomplete one.
        let counts = [10, 0, 5, 5, 0, 0, 9, 1, 10, 0, 99];
        let found = erratic(&counts, 500, 1_000).unwrap();
        assert!((found.slow_share - 0.2).abs() < 1e-12, "{found:?}");
        // The mean is 8 and the sum of squares 4 · 2² + 8² = 80.
        assert!((found.variation - 20_f64.sqrt() / 8.0).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn too_few_windows_or_no_operations_tell_nothing() {
        assert_eq!(erratic(&[1; 3], 1_000, 1_000), None);
        assert_eq!(erratic(&[0; 8], 1_000, 1_000), None);
        assert_eq!(erratic(&[], 0, 0), None);
    }
}

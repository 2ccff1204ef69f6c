use super::*;

fn block<'a>(answered: &'a Histogram, longest_ns: &'a [u64]) -> Block<'a> {
    Block { answered, failed: 0, longest_ns }
}

/// A hundred intervals with a hundred requests of 1 µs; in the `slow` ones, the given number took
/// 1 ms.
fn stalled(slow: &[(usize, u64)]) -> (Histogram, Vec<u64>) {
    let (mut times, mut longest) = (Histogram::new(), vec![1_000; 100]);
    let late: u64 = slow.iter().map(|(_, requests)| requests).sum();
    times.record_many(1_000, 10_000 - late);
    times.record_many(1_000_000, late);
    for (interval, _) in slow {
        longest[*interval] = 1_000_000;
    }
    (times, longest)
}

fn behind_p99(slow: &[(usize, u64)]) -> f64 {
    let (times, longest) = stalled(slow);
    Pooled::of(vec![block(&times, &longest)]).episodes(0.99)
}

#[test]
fn adjacent_slow_intervals_are_one_episode() {
    let one: Vec<(usize, u64)> = (40..50).map(|i| (i, 20)).collect();
    assert!(behind_p99(&one) < 1.2, "{}", behind_p99(&one));
    let apart: Vec<(usize, u64)> = (0..10).map(|i| (i * 10, 20)).collect();
    let found = behind_p99(&apart);
    assert!((10.0..11.2).contains(&found), "{found}");
}

#[test]
fn one_dominant_episode_reduces_the_effective_number() {
    let (mut times, mut longest) = stalled(&[]);
    // 40 intervals with one slow request each, and one with 60 slower ones.
    times.record_many(1_000_000, 40);
    times.record_many(2_000_000, 60);
    (0..40).for_each(|i| longest[2 * i] = 1_000_000);
    longest[99] = 2_000_000;
    let found = Pooled::of(vec![block(&times, &longest)]).episodes(0.99);
    assert!(found < 3.0, "{found}");
}

#[test]
fn if_every_interval_is_slow_each_counts() {
    let (times, longest) = stalled(&[]);
    let found = Pooled::of(vec![block(&times, &longest)]).episodes(0.5);
    assert!((found - 100.0).abs() < 1e-9, "{found}");
}

#[test]
fn intervals_without_requests_do_not_end_a_run() {
    let longest = [5, 9, 0, 0, 9, 5, 0, 5, 9];
    let slow = Slow::than(&[block(&Histogram::new(), &longest)], 5);
    assert_eq!((slow.intervals, slow.those, slow.runs), (6, 3, 2));
}

#[test]
fn failures_count_as_slowest() {
    let (times, mut longest) = stalled(&[]);
    for i in [3, 4, 5, 70] {
        longest[i] = u64::MAX;
    }
    let failing = Block { answered: &times, failed: 400, longest_ns: &longest };
    let found = Pooled::of(vec![failing]).episodes(0.99);
    assert!(found < 3.0, "{found}");
    let nothing = Pooled::of(vec![block(&Histogram::new(), &[])]).episodes(0.99);
    assert!(nothing < 0.5, "{nothing}");
}

/// Garwood's bounds from tables of the Poisson distribution: 4.795 to 18.39 for 10 counts, 81.36 to
/// 121.63 for 100.
#[test]
fn bounds_of_a_count_match_the_tables() {
    for (count, low, high) in [(10.0, 4.795, 18.39), (100.0, 81.36, 121.63)] {
        let (least, most) = poisson(count);
        assert!((least / low - 1.0).abs() < 2e-3 && (most / high - 1.0).abs() < 2e-3);
    }
}

#[test]
fn the_bounds_of_a_share_enclose_it() {
    let apart: Vec<(usize, u64)> = (0..20).map(|i| (i * 5, 10)).collect();
    let (times, longest) = stalled(&apart);
    let blocks = [block(&times, &longest); 4];
    let (low, high) = Pooled::of(blocks.to_vec()).shares_beyond(0.99, 1_000_000);
    assert!(low < 0.01 && high > 0.01 && low > 0.005 && high < 0.02, "{low} {high}");
}

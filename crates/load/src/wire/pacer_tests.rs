use super::*;

const S: u64 = 1_000_000_000;

fn constant(rate: f64, seconds: u64) -> Stage {
    Stage { rate_from_per_s: rate, rate_to_per_s: rate, length_ns: seconds * S }
}

fn all(mut pacer: Pacer) -> Vec<u64> {
    std::iter::from_fn(|| pacer.next_ns()).collect()
}

#[test]
fn a_constant_rate_is_evenly_spaced_over_all_threads() {
    let stages = [constant(1_000.0, 2)];
    let one = all(Pacer::new(Arrivals::Constant, &stages, (0, 1), 1));
    assert_eq!(one.len(), 2_000);
    for (n, at) in one.iter().enumerate() {
        assert!(at.abs_diff(n as u64 * 1_000_000) <= 1, "{n}: {at}");
    }
    let mut four: Vec<u64> =
        (0..4).flat_map(|t| all(Pacer::new(Arrivals::Constant, &stages, (t, 4), 1))).collect();
    four.sort_unstable();
    assert_eq!(four.len(), 2_000);
    assert!(one.iter().zip(&four).all(|(a, b)| a.abs_diff(*b) <= 2));
}

#[test]
fn the_arrivals_of_a_ramp_match_the_area_under_its_rate() {
    let ramp = Stage { rate_from_per_s: 0.0, rate_to_per_s: 2_000.0, length_ns: 4 * S };
    let stages = [ramp, constant(2_000.0, 1), Stage { rate_to_per_s: 0.0, ..constant(2_000.0, 4) }];
    let at = all(Pacer::new(Arrivals::Constant, &stages, (0, 1), 1));
    assert_eq!(at.len(), 4_000 + 2_000 + 4_000);
    assert!(at.is_sorted());
    // Half of the time covers a quarter of the area.
    let quarter = at.partition_point(|t| *t < 2 * S);
    assert!(quarter.abs_diff(1_000) <= 1, "{quarter}");
    let in_the_middle = at.iter().filter(|t| (4 * S..5 * S).contains(*t)).count();
    assert!(in_the_middle.abs_diff(2_000) <= 1, "{in_the_middle}");
}

#[test]
fn a_pause_has_no_arrivals() {
    let stages = [constant(100.0, 1), constant(0.0, 3), constant(100.0, 1)];
    let at = all(Pacer::new(Arrivals::Constant, &stages, (0, 1), 1));
    assert_eq!(at.len(), 200);
    assert!(at.iter().all(|t| !(S..4 * S).contains(t)));
}

#[test]
fn poisson_arrivals_are_exponentially_spaced() {
    let at = all(Pacer::new(Arrivals::Poisson, &[constant(10_000.0, 20)], (0, 1), 7));
    // The standard deviation of a Poisson count is its square root.
    assert!(at.len().abs_diff(200_000) < 2_300, "{}", at.len());
    let gaps: Vec<f64> = at.windows(2).map(|w| (w[1] - w[0]) as f64 / 100_000.0).collect();
    for (bound, share) in [(0.1, 0.0952), (1.0, 0.6321), (3.0, 0.9502)] {
        let below = gaps.iter().filter(|g| **g < bound).count() as f64 / gaps.len() as f64;
        assert!((below - share).abs() < 0.006, "{bound}: {below}");
    }
    let other = all(Pacer::new(Arrivals::Poisson, &[constant(10_000.0, 20)], (1, 2), 7));
    assert!(other.len().abs_diff(100_000) < 1_700);
    assert_ne!(at[..100], other[..100]);
}

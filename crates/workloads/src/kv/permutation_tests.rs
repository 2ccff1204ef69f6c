use super::*;
use proptest::prelude::*;

#[test]
fn every_place_is_taken_once() {
    for count in (1..=300).chain([1_000, 4_096, 4_097, 65_535, 1_000_003]) {
        let permutation = Permutation::new(count);
        let mut taken = vec![false; count as usize];
        for rank in 0..count {
            let place = permutation.place(rank) as usize;
            assert!(!std::mem::replace(&mut taken[place], true), "{count}: {place} twice");
        }
    }
}

proptest! {
    #[test]
    fn two_ranks_never_share_a_place(count in 2u64.., a: u64, b: u64) {
        let permutation = Permutation::new(count);
        let (a, b) = (a % count, b % count);
        let places = [permutation.place(a), permutation.place(b)];
        prop_assert!(places.iter().all(|place| *place < count));
        prop_assert_eq!(places[0] == places[1], a == b);
    }
}

#[test]
fn the_hottest_ranks_are_spread_over_all_places() {
    for count in [10_000, 1 << 20, 1_000_000_007] {
        let permutation = Permutation::new(count);
        let places: Vec<u64> = (0..1_600).map(|rank| permutation.place(rank)).collect();
        let mut sixteenths = [0u32; 16];
        for place in &places {
            sixteenths[(u128::from(*place) * 16 / u128::from(count)) as usize] += 1;
        }
        assert!(sixteenths.iter().all(|n| (60..150).contains(n)), "{count}: {sixteenths:?}");
        // Two random places are on average a third of the range apart.
        let apart: f64 = places.windows(2).map(|w| w[0].abs_diff(w[1]) as f64).sum();
        let share = apart / 1_599.0 / count as f64;
        assert!((share - 1.0 / 3.0).abs() < 0.03, "{count}: {share}");
    }
}

use super::*;
use crate::kv::counts::{assert_drawn, moments};

#[test]
fn the_numbers_are_determined_by_seed_stream_and_operation() {
    let numbers = |seed, stream, n| {
        let mut random = numbers(seed, stream, n);
        [random.next_u64(), random.next_u64()]
    };
    assert_eq!(numbers(1, 2, 3), numbers(1, 2, 3));
    let all = [numbers(1, 2, 3), numbers(2, 2, 3), numbers(1, 3, 3), numbers(1, 2, 4)];
    for (i, one) in all.iter().enumerate() {
        assert!(all[..i].iter().all(|other| other[0] != one[0] && other[1] != one[1]), "{i}");
    }
    // Stored records are generated again from their seed, so other versions must draw the same
    // numbers.
    assert_eq!(numbers(1, 2, 3), [0x1436_c739_ebf6_d3f8, 0x1b57_7b4d_b7ed_cd99]);
}

#[test]
fn first_numbers_of_neighbouring_operations_are_spread() {
    for below in [1, 2, 3, 10, 97] {
        let mut counts = vec![0; below as usize];
        (0..100_000).for_each(|n| counts[numbers(9, 0, n).below(below) as usize] += 1);
        let fair = vec![1.0 / below as f64; below as usize];
        assert_drawn(&counts, &fair, &format!("below {below}"));
    }
}

#[test]
fn numbers_fill_large_ranges_and_stay_below_the_bound() {
    let mut random = numbers(4, 0, 0);
    let bound = u64::MAX - 5;
    let drawn: Vec<u64> = (0..1_000).map(|_| random.below(bound)).collect();
    assert!(drawn.iter().all(|n| *n < bound));
    assert!(drawn.iter().any(|n| *n > bound / 100 * 98), "{:?}", drawn.iter().max());
    assert!((0..1_000).all(|_| random.below(1) == 0));
}

#[test]
fn unit_numbers_fill_the_range_and_normal_ones_have_their_moments() {
    let mut random = numbers(5, 0, 0);
    let units: Vec<f64> = (0..200_000).map(|_| random.unit()).collect();
    assert!(units.iter().all(|u| (0.0..1.0).contains(u)));
    let mut counts = [0; 50];
    for unit in units {
        counts[(unit * 50.0) as usize] += 1;
    }
    assert_drawn(&counts, &[0.02; 50], "units");
    let (mean, deviation) = moments((0..200_000).map(|_| random.normal()));
    assert!(mean.abs() < 0.01 && (deviation - 1.0).abs() < 0.01, "{mean} {deviation}");
    let beyond = (0..200_000).filter(|_| random.normal().abs() > 1.959_964).count();
    assert!(beyond.abs_diff(10_000) < 450, "{beyond} of 200000 beyond 5 %");
}

use super::*;
use crate::kv::counts::{assert_drawn, bound, chi_square};
use crate::kv::numbers;
use std::time::{Duration, Instant};

const EXPONENTS: [f64; 8] = [0.0, 0.3, 0.5, 0.99, 1.0, 1.2, 2.0, 5.0];

fn exact(count: usize, exponent: f64) -> Vec<f64> {
    let weights: Vec<f64> = (1..=count).map(|k| (k as f64).powf(-exponent)).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|w| w / sum).collect()
}

fn draws(count: usize, exponent: f64, draws: u64, seed: u64) -> Vec<u64> {
    let (zipf, mut counts) = (Zipf::new(count as u64, exponent), vec![0; count]);
    let mut random = numbers(seed, 0, 0);
    (0..draws).for_each(|_| counts[zipf.rank(&mut random) as usize] += 1);
    counts
}

#[test]
fn ranks_follow_zipfs_law() {
    for exponent in EXPONENTS {
        for count in [2, 3, 10, 100, 1_000] {
            let counts = draws(count, exponent, 300_000, count as u64);
            assert_drawn(&counts, &exact(count, exponent), &format!("{count}, {exponent}"));
        }
        assert_eq!(draws(1, exponent, 100, 1), [100]);
    }
}

#[test]
fn a_slightly_wrong_exponent_is_detected() {
    for exponent in [0.5, 0.99, 1.0, 1.2, 2.0] {
        let counts = draws(100, exponent, 1_000_000, 3);
        assert_drawn(&counts, &exact(100, exponent), &format!("{exponent}"));
        let (statistic, freedom) = chi_square(&counts, &exact(100, exponent + 0.02));
        assert!(statistic > 1.5 * bound(freedom), "{exponent}: {statistic}");
    }
}

/// Sum of k^−s for k from `from` to `to`: the first terms one by one, the others by the integral,
/// whose error there is below 10⁻⁹ of the sum.
fn sum(from: u64, to: u64, exponent: f64) -> f64 {
    let split = 100_000.clamp(from, to + 1);
    let single: f64 = (from..split).map(|k| (k as f64).powf(-exponent)).sum();
    let bounds = [split, to + 1].map(|k| k as f64 - 0.5);
    let tail = if (exponent - 1.0).abs() < 1e-12 {
        (bounds[1] / bounds[0]).ln()
    } else {
        let power = |x: f64| x.powf(1.0 - exponent) / (1.0 - exponent);
        power(bounds[1]) - power(bounds[0])
    };
    single + tail
}

#[test]
fn a_billion_ranks_are_as_fast_and_as_exact_as_ten() {
    let count = 1_000_000_000;
    for exponent in EXPONENTS {
        let begun = Instant::now();
        let (zipf, mut random) = (Zipf::new(count, exponent), numbers(8, 0, 0));
        // Ranks 0 to 9 one by one, then 10 to 99, 100 to 999, and so on.
        let mut counts = vec![0; 18];
        for _ in 0..500_000 {
            let rank = zipf.rank(&mut random);
            assert!(rank < count);
            let decade = (rank + 1).ilog10() as usize;
            counts[if rank < 9 { rank as usize } else { 8 + decade.min(9) }] += 1;
        }
        // Tables of a billion ranks would take longer, and 8 GB.
        assert!(begun.elapsed() < Duration::from_secs(5), "{exponent}: {:?}", begun.elapsed());
        let all = sum(1, count, exponent);
        let single = (1..10).map(|k| sum(k, k, exponent) / all);
        let decades = (1..=9u32).map(|d| {
            let to = if d == 8 { 999_999_999 } else { 10u64.pow(d + 1) - 1 };
            if d == 9 {
                sum(count, count, exponent) / all
            } else {
                sum(10u64.pow(d), to, exponent) / all
            }
        });
        let probabilities: Vec<f64> = single.chain(decades).collect();
        assert_drawn(&counts, &probabilities, &format!("{exponent}"));
    }
    assert!(size_of::<Zipf>() <= 48);
}

#[test]
fn exponents_around_one_have_no_discontinuity() {
    for (x, u) in [(1.5, 0.3), (1e9, 15.0), (123.0, 4.0)] {
        for near in [1.0 - 1e-9, 1.0 + 1e-9, 1.0 - 1e-12] {
            let (a, b) = (integral(x, 1.0), integral(x, near));
            assert!((a / b - 1.0).abs() < 1e-7, "integral {x} {near}: {a} {b}");
            let (a, b) = (inverse(u, 1.0), inverse(u, near));
            assert!((a / b - 1.0).abs() < 1e-6, "inverse {u} {near}: {a} {b}");
        }
    }
}

#[test]
fn the_inverse_undoes_the_integral() {
    for exponent in EXPONENTS {
        // Where a steep law is flat, all ranks together have a probability below 10⁻⁹.
        let steep = |x: &f64| x.powf(1.0 - exponent) > 1e-9;
        for x in [1.0, 1.5, 2.5, 100.5, 12_345.5].into_iter().filter(steep) {
            let back = inverse(integral(x, exponent), exponent);
            assert!((back / x - 1.0).abs() < 1e-6, "{exponent} {x} {back}");
        }
    }
}

#[test]
fn steep_laws_keep_to_the_first_rank() {
    for exponent in [50.0, 1e3, 1e300] {
        let counts = draws(1_000, exponent, 10_000, 1);
        assert_eq!(counts[0], 10_000, "{exponent}");
    }
}

use super::*;
use crate::kv::counts::assert_drawn;
use crate::kv::numbers;

fn share(counts: &[u64], at: u64) -> f64 {
    counts[at as usize] as f64 / counts.iter().sum::<u64>() as f64
}

/// In a run of YCSB itself over 1,000 records the hottest got 3.87 % of the requests.
#[test]
fn the_hottest_records_get_the_same_shares_as_in_ycsb() {
    for (records, hottest, folded) in [(1_000, 0.038_7, 0.000_9), (100_000, 0.037_8, 0.0)] {
        let ycsb = Scrambled::new(records);
        let mut counts = vec![0_u64; records as usize];
        for n in 0..2_000_000 {
            counts[ycsb.record(&mut numbers(3, 0, n)) as usize] += 1;
        }
        // The hash determines the records of ranks 0 and 1; other ranks add less than 0.1 % to
        // each.
        for (rank, zipf) in [(0, 1.0 / ZETA), (1, (SECOND - 1.0) / ZETA)] {
            let record = scattered(rank) % (records + 1);
            let drawn = share(&counts, record);
            assert!((drawn - zipf - folded).abs() < 0.000_6, "{rank} of {records}: {drawn}");
        }
        let most = (0..records).map(|record| share(&counts, record)).fold(0.0, f64::max);
        assert!((most - hottest).abs() < 0.000_5, "{records}: {most}");
        // With 100,000 records, each one without a hot rank gets about 18 draws.
        let unasked = counts.iter().filter(|count| **count == 0).count() as u64;
        assert!(unasked <= records / 10_000, "{unasked} of {records}");
    }
}

/// Offset basis and prime of the FNV reference: eight bytes of 0, and of 1.
#[test]
fn ranks_are_scattered_by_fnv_1a() {
    assert_eq!(scattered(0), 0xa8c7_f832_281a_39c5_u64.cast_signed().unsigned_abs());
    assert_ne!(scattered(1), scattered(2));
    let one = Scrambled::new(1);
    assert!((0..1_000).all(|n| one.record(&mut numbers(1, 0, n)) == 0));
}

/// A line-by-line translation of YCSB's `ZipfianGenerator`.
struct Original {
    items: f64,
    count: u64,
    zeta: f64,
    eta: f64,
}

impl Original {
    fn new(items: u64) -> Self {
        let mut own = Self { items: items as f64, count: 0, zeta: 0.0, eta: 0.0 };
        own.grow(items);
        own
    }

    fn grow(&mut self, count: u64) {
        for i in self.count..count {
            self.zeta += 1.0 / ((i + 1) as f64).powf(EXPONENT);
        }
        self.count = count;
        let second = 1.0 + 1.0 / 2f64.powf(EXPONENT);
        self.eta = (1.0 - (2.0 / self.items).powf(1.0 - EXPONENT)) / (1.0 - second / self.zeta);
    }

    fn next(&mut self, count: u64, u: f64) -> u64 {
        if count > self.count {
            self.grow(count);
        }
        let uz = u * self.zeta;
        if uz < 1.0 {
            return 0;
        }
        if uz < 1.0 + 0.5_f64.powf(EXPONENT) {
            return 1;
        }
        let alpha = 1.0 / (1.0 - EXPONENT);
        (count as f64 * (self.eta * u - self.eta + 1.0).powf(alpha)) as u64
    }
}

#[test]
fn the_latest_records_match_ycsb_while_records_are_inserted() {
    for records in [1, 2, 3, 10, 1_000, 100_000] {
        let (latest, mut original) = (Latest::new(records), Original::new(records - 1));
        // A twentieth of the operations insert; with few records, many times as many as initially.
        for n in 0..100_000 {
            let newest = records - 1 + n / 20;
            let random = || numbers(7, records, n);
            let expected = newest.saturating_sub(original.next(newest, random().unit()));
            let drawn = latest.record(&mut random(), newest);
            // With fewer records, the rounding of zeta may shift a rank.
            let near = u64::from(newest < 200);
            assert!(drawn.abs_diff(expected) <= near, "{records}, {newest}: {drawn}, {expected}");
        }
    }
}

#[test]
fn the_latest_of_many_records_get_the_same_shares_as_in_ycsb() {
    for (records, shares) in [
        // Ranks 1 to 5 by the formula; by Zipf's law the third has 4.36 % and 2.64 %.
        (1_000, [0.129_402, 0.065_151, 0.051_046, 0.036_344, 0.028_262]),
        (100_000, [0.078_258, 0.039_401, 0.031_372, 0.022_336, 0.017_370]),
    ] {
        let latest = Latest::new(records);
        let mut counts = [0_u64; 6];
        for n in 0..1_000_000 {
            let record = latest.record(&mut numbers(5, 0, n), records - 1);
            counts[(records - 1 - record).min(5) as usize] += 1;
        }
        let rest = 1.0 - shares.iter().sum::<f64>();
        let law: Vec<f64> = shares.into_iter().chain([rest]).collect();
        assert_drawn(&counts, &law, &format!("latest of {records}"));
    }
}

#[test]
fn zeta_matches_the_sum_of_its_terms() {
    let mut sum = 0.0;
    for count in 0..=100_000 {
        if count > 0 {
            sum += (count as f64).powf(-EXPONENT);
        }
        let (zeta, within) = (zeta(count), if count < 1_000 { 1e-7 } else { 1e-12 });
        assert!((zeta - sum).abs() <= within * sum, "{count}: {zeta}, {sum}");
    }
    assert!((zeta(RANKS as u64) / ZETA - 1.0).abs() < 1e-11);
    assert!((1.0 + 0.5_f64.powf(EXPONENT) - SECOND).abs() < 1e-15);
}

//! Keys as YCSB chooses them: its `ScrambledZipfianGenerator`.
//!
//! It draws a rank among ten billion, however many records there are, by the approximation of Gray
//! and others ("Quickly generating billion-record synthetic databases", SIGMOD 1994) with a zeta
//! that was computed once, and folds the rank's FNV-1a hash into the records. So each record is
//! that of many ranks, and the hottest gets 1 / 26.469 of the operations and what is folded onto
//! it, whatever their number: far less than by Zipf's law over the records.
//!
//! `CoreWorkload` gives it one item more than there are records and draws again where that one
//! comes. Constants and procedure: `ScrambledZipfianGenerator`, `ZipfianGenerator` and `Utils` of
//! YCSB 0.17.

use super::Random;

/// Ranks that are drawn from.
const RANKS: f64 = 1e10;
/// The sum of r^−0.99 over them, as its source has it.
const ZETA: f64 = 26.469_028_201_783_02;
const EXPONENT: f64 = 0.99;
/// FNV-1a of 64 bits.
const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 1_099_511_628_211;

/// YCSB's choice among a number of records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ycsb {
    records: u64,
    eta: f64,
    /// Up to where u · ζ is the second rank.
    second: f64,
}

impl Ycsb {
    /// Among so many records, at least 1.
    pub(super) fn new(records: u64) -> Self {
        let second = 1.0 + 0.5_f64.powf(EXPONENT);
        let eta = (1.0 - (2.0 / RANKS).powf(1.0 - EXPONENT)) / (1.0 - second / ZETA);
        Self { records, eta, second }
    }

    /// The number of a record.
    #[inline]
    pub(super) fn record(&self, random: &mut Random) -> u64 {
        loop {
            let item = scattered(self.rank(random.unit())) % (self.records + 1);
            if item < self.records {
                return item;
            }
        }
    }

    /// The rank of a number from 0 to 1, 1 excluded.
    fn rank(&self, u: f64) -> u64 {
        let of_zeta = u * ZETA;
        if of_zeta < 1.0 {
            0
        } else if of_zeta < self.second {
            1
        } else {
            (RANKS * (self.eta * u - self.eta + 1.0).powf(1.0 / (1.0 - EXPONENT))) as u64
        }
    }
}

/// The hash of a rank: its eight bytes, the lowest first, and no sign.
fn scattered(rank: u64) -> u64 {
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(PRIME);
    rank.to_le_bytes().into_iter().fold(OFFSET_BASIS, hash).cast_signed().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of YCSB itself over 1,000 records gave the hottest 3.87 % of its requests.
    #[test]
    fn the_hottest_of_a_thousand_records_get_what_ycsb_gives_them() {
        let ycsb = Ycsb::new(1_000);
        let mut counts = vec![0_u64; 1_000];
        let draws = 2_000_000;
        for n in 0..draws {
            counts[ycsb.record(&mut Random::new(3, 0, n)) as usize] += 1;
        }
        let share = |record: u64| counts[record as usize] as f64 / draws as f64;
        // Ranks 0 and 1 lie where the hash puts them; below 0.1 % more is folded onto each.
        let (first, second) = (scattered(0) % 1_001, scattered(1) % 1_001);
        let zipf = 1.0 / ZETA;
        let folded = 0.000_9;
        assert!((share(first) - zipf - folded).abs() < 0.000_6, "{}", share(first));
        let half = zipf * 0.5_f64.powf(0.99);
        assert!((share(second) - half - folded).abs() < 0.000_6, "{}", share(second));
        let hottest = counts.iter().max().copied().unwrap_or(0) as f64 / draws as f64;
        assert!((hottest - 0.038_7).abs() < 0.000_5, "{hottest}");
        assert!(counts.iter().all(|count| *count > 0), "every record is asked for");
    }

    /// Offset basis and prime of the FNV reference: eight bytes of 0, and of 1.
    #[test]
    fn ranks_are_scattered_by_fnv_1a() {
        assert_eq!(scattered(0), 0xa8c7_f832_281a_39c5_u64.cast_signed().unsigned_abs());
        assert_ne!(scattered(1), scattered(2));
        let one = Ycsb::new(1);
        assert!((0..1_000).all(|n| one.record(&mut Random::new(1, 0, n)) == 0));
    }
}

//! Keys as YCSB chooses them: its `ScrambledZipfianGenerator` and its `SkewedLatestGenerator`.
//!
//! Both draw a rank by the approximation of Gray and others ("Quickly generating billion-record
//! synthetic databases", SIGMOD 1994): ranks 0 and 1 are as frequent as Zipf's law has it, all
//! others are those of a continuous power law. Of 1,000 records rank 2 gets 5.10 % and not 4.36 %.
//!
//! The scrambled one draws among ten billion ranks, however many records there are, with a zeta
//! that was computed once, and folds the rank's FNV-1a hash into the records. So each record is
//! that of many ranks, and the hottest gets 1 / 26.469 of the operations and what is folded onto
//! it, whatever their number: far less than by Zipf's law over the records. `CoreWorkload` gives it
//! one item more than there are records and draws again where that one comes.
//!
//! The latest one draws among as many ranks as the number of the newest record, counted from 0, and
//! goes back from it by that rank; so record 0 is never asked for. As records are inserted, YCSB
//! adds their terms to zeta, and leaves the number of items in the numerator of eta as it was at
//! first.
//!
//! Constants and procedure: `ScrambledZipfianGenerator`, `SkewedLatestGenerator`,
//! `ZipfianGenerator` and `Utils` of YCSB 0.17.

use stats::SplitMix64;

/// Ranks that the scrambled one draws from.
const RANKS: f64 = 1e10;
/// The sum of r^−0.99 over them, as its source has it.
const ZETA: f64 = 26.469_028_201_783_02;
const EXPONENT: f64 = 0.99;
/// 1 + 2^−0.99: up to where u · ζ is the second rank.
const SECOND: f64 = 1.503_477_775_028_359_4;
/// Riemann's zeta function at the exponent: what is left of a sum of r^−0.99 without its growth.
const RIEMANN: f64 = -99.423_512_977_728_1;
/// Fewer terms are added one by one.
const TERMS_MIN: u64 = 16;
/// FNV-1a of 64 bits.
const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 1_099_511_628_211;

/// YCSB's zipfian choice among a number of records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scrambled {
    records: u64,
    gray: Gray,
}

impl Scrambled {
    /// Among so many records, at least 1.
    pub(super) fn new(records: u64) -> Self {
        Self { records, gray: Gray::new(RANKS, ZETA, numerator(RANKS)) }
    }

    /// The number of a record.
    #[inline]
    pub(super) fn record(&self, random: &mut SplitMix64) -> u64 {
        loop {
            let item = scattered(self.gray.rank(random.unit())) % (self.records + 1);
            if item < self.records {
                return item;
            }
        }
    }
}

/// YCSB's choice of the latest records.
#[derive(Clone, Debug)]
pub(super) struct Latest {
    numerator: f64,
}

impl Latest {
    /// Among so many records at first, at least 1.
    pub(super) fn new(records: u64) -> Self {
        Self { numerator: numerator((records - 1) as f64) }
    }

    /// The number of a record, when `newest` was inserted last.
    #[inline]
    pub(super) fn record(&self, random: &mut SplitMix64, newest: u64) -> u64 {
        let gray = Gray::new(newest as f64, zeta(newest), self.numerator);
        // Of two records at first, YCSB may go back beyond the first.
        newest.saturating_sub(gray.rank(random.unit()))
    }
}

/// Ranks by the approximation of Gray and others.
#[derive(Clone, Copy, Debug)]
struct Gray {
    items: f64,
    zeta: f64,
    eta: f64,
}

impl Gray {
    fn new(items: f64, zeta: f64, numerator: f64) -> Self {
        Self { items, zeta, eta: numerator / (1.0 - SECOND / zeta) }
    }

    /// The rank of a number from 0 to 1, 1 excluded.
    #[inline]
    fn rank(&self, u: f64) -> u64 {
        let of_zeta = u * self.zeta;
        if of_zeta < 1.0 {
            0
        } else if of_zeta < SECOND {
            1
        } else {
            (self.items * (self.eta * u - self.eta + 1.0).powf(1.0 / (1.0 - EXPONENT))) as u64
        }
    }
}

/// That of eta, of the number of items at first.
fn numerator(items: f64) -> f64 {
    1.0 - (2.0 / items).powf(1.0 - EXPONENT)
}

/// The sum of r^−0.99 for r from 1 to `count`, by Euler's and Maclaurin's formula: within 10⁻⁷ of
/// what YCSB adds up term by term, and as quick for a billion.
#[inline]
fn zeta(count: u64) -> f64 {
    if count < TERMS_MIN {
        return (1..=count).map(|r| (r as f64).powf(-EXPONENT)).sum();
    }
    let n = count as f64;
    let power = n.powf(1.0 - EXPONENT);
    let last = power / n;
    RIEMANN + power / (1.0 - EXPONENT) + last / 2.0 - EXPONENT * last / (12.0 * n)
}

/// The hash of a rank: its eight bytes, the lowest first, and no sign.
fn scattered(rank: u64) -> u64 {
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(PRIME);
    rank.to_le_bytes().into_iter().fold(OFFSET_BASIS, hash).cast_signed().unsigned_abs()
}

#[cfg(test)]
#[path = "ycsb_tests.rs"]
mod tests;

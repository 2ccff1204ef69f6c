//! Keys chosen as in YCSB, by its `ScrambledZipfianGenerator` and its `SkewedLatestGenerator`.
//!
//! Both draw a rank by the approximation of Gray et al. ("Quickly generating billion-record
//! synthetic databases", SIGMOD 1994): ranks 0 and 1 follow Zipf's law, all others a continuous
//! power law. With 1,000 records rank 2 gets 5.10 % instead of 4.36 %.
//!
//! The scrambled generator draws among ten billion ranks, however many records there are, with a
//! precomputed zeta, and folds the rank's FNV-1a hash onto the records. So each record has many
//! ranks, and the hottest gets 1 / 26.469 of the operations plus the ranks folded onto it, for any
//! number of records: far less than by Zipf's law over the records. `CoreWorkload` gives the
//! generator one item more than there are records and draws again when it gets that item.
//!
//! The latest generator draws among as many ranks as the number of the newest record, counted from
//! 0, and goes back from it by that rank, so it never returns record 0. When records are inserted,
//! YCSB adds their terms to zeta but keeps the initial number of items in the numerator of eta.
//!
//! Constants and algorithm: `ScrambledZipfianGenerator`, `SkewedLatestGenerator`,
//! `ZipfianGenerator` and `Utils` of YCSB 0.17.

use stats::SplitMix64;

/// Number of ranks of the scrambled generator.
const RANKS: f64 = 1e10;
/// The sum of r^−0.99 over them, copied from YCSB's source.
const ZETA: f64 = 26.469_028_201_783_02;
const EXPONENT: f64 = 0.99;
/// 1 + 2^−0.99: the upper bound of u · ζ for the second rank.
const SECOND: f64 = 1.503_477_775_028_359_4;
/// Riemann's zeta function at the exponent: the constant term of a sum of r^−0.99.
const RIEMANN: f64 = -99.423_512_977_728_1;
/// Fewer terms are added one by one.
const TERMS_MIN: u64 = 16;
/// 64-bit FNV-1a.
const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 1_099_511_628_211;

/// YCSB's zipfian choice among a number of records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scrambled {
    records: u64,
    gray: Gray,
}

impl Scrambled {
    /// A choice among `records` records, at least 1.
    pub(super) fn new(records: u64) -> Self {
        Self { records, gray: Gray::new(RANKS, ZETA, numerator(RANKS)) }
    }

    /// Draws the number of a record.
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
    /// A choice among initially `records` records, at least 1.
    pub(super) fn new(records: u64) -> Self {
        Self { numerator: numerator((records - 1) as f64) }
    }

    /// Draws the number of a record, where `newest` was inserted last.
    #[inline]
    pub(super) fn record(&self, random: &mut SplitMix64, newest: u64) -> u64 {
        let gray = Gray::new(newest as f64, zeta(newest), self.numerator);
        // With two records initially, YCSB may go back beyond the first.
        newest.saturating_sub(gray.rank(random.unit()))
    }
}

/// Ranks by the approximation of Gray et al.
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

    /// The rank for a number `u` from 0 to 1, 1 excluded.
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

/// Numerator of eta, from the initial number of items.
fn numerator(items: f64) -> f64 {
    1.0 - (2.0 / items).powf(1.0 - EXPONENT)
}

/// The sum of r^−0.99 for r from 1 to `count`, by the Euler–Maclaurin formula: within 10⁻⁷ of
/// YCSB's sum of all terms, in constant time.
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

/// YCSB's hash of a rank: FNV-1a of its eight bytes, lowest first, without its sign.
fn scattered(rank: u64) -> u64 {
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(PRIME);
    rank.to_le_bytes().into_iter().fold(OFFSET_BASIS, hash).cast_signed().unsigned_abs()
}

#[cfg(test)]
#[path = "ycsb_tests.rs"]
mod tests;

//! A distribution of durations in nanoseconds.
//!
//! A thin wall around `HdrHistogram` (three significant digits, no upper clamp) so that every
//! room records, merges and stores distributions alike. Percentiles are computed on reading and
//! never averaged; merging adds counts and is exact.
//!
//! Stored form: `HdrHistogram` V2 with zlib, base64, as other `HdrHistogram` libraries read it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

/// Significant decimal digits kept: a value is stored within 0.1 %.
pub const SIGNIFICANT_DIGITS: u8 = 3;

/// The largest duration told apart, 146 years: as far as an `HdrHistogram` grows.
pub const LARGEST_NS: u64 = i64::MAX as u64 / 2;

/// A distribution of durations in nanoseconds; empty when new.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram(hdrhistogram::Histogram<u64>);

/// A stored histogram that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("unreadable histogram: {0}")]
pub struct HistogramError(String);

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty distribution that grows as needed.
    ///
    /// # Panics
    /// Never: three digits are within what `HdrHistogram` accepts.
    pub fn new() -> Self {
        Self(hdrhistogram::Histogram::new(SIGNIFICANT_DIGITS).expect("3 digits are valid"))
    }

    /// Adds one duration, growing as needed. Zero counts as one nanosecond, the smallest value
    /// kept apart; what is beyond [`LARGEST_NS`] counts as that.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        let value_ns = value_ns.clamp(1, LARGEST_NS);
        if self.0.record(value_ns).is_err() {
            // It fails only where the machine's word is too small to index the value: `record`
            // of the library grows the histogram, `saturating_record` never does.
            self.0.saturating_record(value_ns);
        }
    }

    /// Adds a duration that occurred `count` times.
    pub fn record_many(&mut self, value_ns: u64, count: u64) {
        let value_ns = value_ns.clamp(1, LARGEST_NS);
        if self.0.record_n(value_ns, count).is_err() {
            self.0.saturating_record_n(value_ns, count);
        }
    }

    /// Adds all counts of `other`; exact, since both have the same digits.
    ///
    /// # Panics
    /// Never: this histogram grows to hold whatever the other holds.
    pub fn merge(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        self.0.add(&other.0).expect("an auto-resizing histogram takes any other");
    }

    /// Takes away the counts of `part`, which were all recorded here too; exact.
    #[must_use]
    pub fn without(&self, part: &Self) -> Self {
        let mut rest = self.clone();
        // Fails only where there is more in the part than in the whole.
        if rest.0.subtract(&part.0).is_err() {
            return self.clone();
        }
        rest
    }

    /// Forgets all counts and keeps the memory.
    pub fn clear(&mut self) {
        if !self.is_empty() {
            self.0.reset();
        }
    }

    /// How many durations were recorded.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// True when nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The duration in nanoseconds below or at which a share `q` (0 to 1) of all lie; 0 when empty.
    pub fn quantile_ns(&self, q: f64) -> u64 {
        self.0.value_at_quantile(q)
    }

    /// The mean in nanoseconds; 0 when empty.
    pub fn mean_ns(&self) -> f64 {
        self.0.mean()
    }

    /// The largest duration in nanoseconds (to three digits, rounded up); 0 when empty.
    pub fn max_ns(&self) -> u64 {
        self.0.max()
    }

    /// Each duration kept apart, in nanoseconds (the largest of those that count as it), and how
    /// often it was recorded; ascending.
    pub fn recorded(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()))
    }

    /// The stored form described in the module's comment.
    ///
    /// # Panics
    /// Never: writing to memory does not fail.
    pub fn encode(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.0, &mut bytes)
            .expect("serialising to memory does not fail");
        STANDARD.encode(bytes)
    }

    /// Reads the stored form.
    pub fn decode(text: &str) -> Result<Self, HistogramError> {
        let bytes = STANDARD.decode(text).map_err(|e| HistogramError(e.to_string()))?;
        let mut inner: hdrhistogram::Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|e| HistogramError(e.to_string()))?;
        if inner.sigfig() != SIGNIFICANT_DIGITS {
            return Err(HistogramError(format!("{} digits, expected 3", inner.sigfig())));
        }
        inner.auto(true);
        Ok(Self(inner))
    }
}

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.encode())
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::decode(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Histogram {
        let mut h = Histogram::new();
        for value in values {
            h.record(*value);
        }
        h
    }

    #[test]
    fn an_empty_histogram_is_zero_everywhere() {
        let h = Histogram::new();
        assert_eq!((h.count(), h.quantile_ns(0.99), h.max_ns()), (0, 0, 0));
    }

    proptest! {
        #[test]
        fn merging_equals_recording_everything_in_one(
            a in prop::collection::vec(1u64..10_000_000_000, 0..200),
            b in prop::collection::vec(1u64..10_000_000_000, 0..200),
        ) {
            let mut merged = of(&a);
            merged.merge(&of(&b));
            let both = of(&[a, b].concat());
            prop_assert_eq!(merged.count(), both.count());
            for q in [0.0, 0.5, 0.9, 0.99, 1.0] {
                prop_assert_eq!(merged.quantile_ns(q), both.quantile_ns(q));
            }
        }

        #[test]
        fn the_stored_form_reads_back(a in prop::collection::vec(1u64..u64::MAX / 4, 0..50)) {
            let h = of(&a);
            let mut back = Histogram::decode(&h.encode()).unwrap();
            prop_assert_eq!(back.count(), h.count());
            prop_assert_eq!(back.quantile_ns(0.5), h.quantile_ns(0.5));
            back.record(1_000_000_000_000);
            prop_assert_eq!(back.count(), h.count() + 1);
        }

        #[test]
        fn a_quantile_is_within_a_thousandth(v in 1u64..1_000_000_000_000) {
            let got = of(&[v]).quantile_ns(0.5) as f64;
            prop_assert!((got / v as f64 - 1.0).abs() <= 0.001);
        }
    }

    #[test]
    fn what_is_taken_away_is_as_if_it_had_not_been_recorded() {
        let (part, rest) = (of(&[7, 1_000_000, 1_000_000]), of(&[5, 90_000_000_000]));
        let mut whole = part.clone();
        whole.merge(&rest);
        let left = whole.without(&part);
        assert_eq!(left.recorded().collect::<Vec<_>>(), rest.recorded().collect::<Vec<_>>());
        assert_eq!((left.count(), left.max_ns()), (2, rest.max_ns()));
        // What was not there cannot be taken away.
        assert_eq!(rest.without(&whole).count(), 2);
    }

    #[test]
    fn durations_far_apart_are_told_apart() {
        let h = of(&[0, 2_048, 150_000, 3_000_000_000, u64::MAX]);
        for (q, expected) in [(0.2, 1.0), (0.4, 2_048.0), (0.6, 150_000.0), (0.8, 3e9)] {
            let got = h.quantile_ns(q) as f64;
            assert!((got / expected - 1.0).abs() <= 0.001, "{got} at {q}");
        }
        assert!(h.max_ns() >= LARGEST_NS);
    }

    #[test]
    fn many_at_once_are_as_many_one_by_one() {
        let mut many = Histogram::new();
        many.record_many(0, 2);
        many.record_many(77_000, 3);
        many.record_many(5, 0);
        assert_eq!(many, of(&[0, 0, 77_000, 77_000, 77_000]));
    }

    #[test]
    fn what_was_recorded_is_told_in_order() {
        let told: Vec<_> = of(&[7, 1_000_000, 3, 7]).recorded().collect();
        let (largest, count) = told[2];
        assert_eq!((&told[..2], count), (&[(3, 1), (7, 2)][..], 1));
        assert!((1_000_000..=1_001_000).contains(&largest), "{largest}");
        assert_eq!(Histogram::new().recorded().count(), 0);
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(Histogram::decode("not base64!").is_err());
        assert!(Histogram::decode("AAAA").is_err());
    }
}

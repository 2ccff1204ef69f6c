//! A distribution of durations in nanoseconds.
//!
//! A thin wrapper around `HdrHistogram` (three significant digits, no upper clamp), so that all
//! crates record, merge and store distributions in the same way. Percentiles are computed on
//! reading and never averaged; merging adds counts and is exact.
//!
//! Stored form: `HdrHistogram` V2 with zlib in base64, which other `HdrHistogram` libraries read.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

mod stored;

pub use stored::SIGNIFICANT_DIGITS;
use stored::{Place, Stored};

/// Counters by value.
type Counters = hdrhistogram::Histogram<u64>;

/// Largest duration, 146 years: the limit of an `HdrHistogram`.
pub const LARGEST_NS: u64 = i64::MAX as u64 / 2;

/// A distribution of durations in nanoseconds; empty when new.
#[derive(Clone, Debug)]
pub struct Histogram(Form);

/// A histogram that records has a counter per value; one that was read stays compact until it
/// changes.
#[derive(Clone, Debug)]
enum Form {
    Counters(Counters),
    Stored(Stored),
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.count() == other.count() && self.recorded().eq(other.recorded())
    }
}

/// Error of reading a stored histogram.
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
    pub fn new() -> Self {
        Self(Form::Counters(counters()))
    }

    /// The counters; expands a stored histogram first.
    #[inline]
    fn counters(&mut self) -> &mut Counters {
        if let Form::Stored(stored) = &self.0 {
            self.0 = Form::Counters(unfolded(stored));
        }
        match &mut self.0 {
            Form::Counters(counters) => counters,
            Form::Stored(_) => unreachable!("it was expanded above"),
        }
    }

    fn as_counters(&self) -> Cow<'_, Counters> {
        match &self.0 {
            Form::Counters(counters) => Cow::Borrowed(counters),
            Form::Stored(stored) => Cow::Owned(unfolded(stored)),
        }
    }

    /// Adds one duration, growing as needed. Zero counts as one nanosecond, the smallest value;
    /// durations beyond [`LARGEST_NS`] count as that.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        let value_ns = value_ns.clamp(1, LARGEST_NS);
        let counters = self.counters();
        if counters.record(value_ns).is_err() {
            // The library's `record` grows the histogram and fails only if `usize` is too small to
            // index the value; `saturating_record` never grows it.
            counters.saturating_record(value_ns);
        }
    }

    /// Adds a duration `count` times.
    pub fn record_many(&mut self, value_ns: u64, count: u64) {
        put(self.counters(), value_ns, count);
    }

    /// Adds all counts of `other`; exact, since both have the same digits.
    ///
    /// # Panics
    /// Never: this histogram grows to the range of the other.
    pub fn merge(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        match &other.0 {
            Form::Counters(other) => {
                self.counters().add(other).expect("an auto-resizing histogram accepts any other");
            }
            Form::Stored(other) => {
                let own = self.counters();
                other.places().for_each(|place| put(own, place.lowest, place.count));
            }
        }
    }

    /// Clears all counts and keeps the memory.
    pub fn clear(&mut self) {
        if !self.is_empty() {
            self.counters().reset();
        }
    }

    /// Number of recorded durations.
    pub fn count(&self) -> u64 {
        match &self.0 {
            Form::Counters(counters) => counters.len(),
            Form::Stored(stored) => stored.count,
        }
    }

    /// True if nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The quantile `q` (0 to 1) in nanoseconds; 0 if empty.
    pub fn quantile_ns(&self, q: f64) -> u64 {
        match &self.0 {
            Form::Counters(counters) if q <= 0.0 => counters.value_at_quantile(0.0),
            Form::Stored(stored) if q <= 0.0 => stored.places().next().map_or(0, |p| p.lowest),
            _ => self.ns_of(rank(q, self.count())),
        }
    }

    /// The duration of a rank in nanoseconds, from 1 (shortest) to [`Self::count`]; 0 if empty.
    pub fn ns_of(&self, rank: u64) -> u64 {
        let rank = rank.clamp(1, self.count().max(1));
        match &self.0 {
            // Half a rank lower, so that rounding cannot change the rank.
            Form::Counters(counters) => {
                counters.value_at_quantile((rank as f64 - 0.5) / counters.len().max(1) as f64)
            }
            Form::Stored(stored) => {
                let mut below = 0;
                let reaches = |place: &Place| {
                    below += place.count;
                    below >= rank
                };
                stored.places().find(reaches).map_or(0, Place::highest)
            }
        }
    }

    /// The mean in nanoseconds; 0 if empty.
    pub fn mean_ns(&self) -> f64 {
        match &self.0 {
            Form::Counters(counters) => counters.mean(),
            Form::Stored(stored) => stored.places().fold(0.0, |sum, place| {
                let middle = (place.lowest + place.width / 2) as f64;
                sum + middle * place.count as f64 / stored.count as f64
            }),
        }
    }

    /// The largest duration in nanoseconds (to three digits, rounded up); 0 if empty.
    pub fn max_ns(&self) -> u64 {
        match &self.0 {
            Form::Counters(counters) => counters.max(),
            Form::Stored(stored) => stored.places().last().map_or(0, Place::highest),
        }
    }

    /// Each distinct duration in nanoseconds (the upper end of its bucket) with its count;
    /// ascending.
    pub fn recorded(&self) -> impl Iterator<Item = (u64, u64)> {
        let (counters, stored) = match &self.0 {
            Form::Counters(counters) => (Some(counters), None),
            Form::Stored(stored) => (None, Some(stored)),
        };
        let of_counters = counters.into_iter().flat_map(|counters| {
            counters.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()))
        });
        let places = stored.into_iter().flat_map(Stored::places);
        of_counters.chain(places.map(|place| (place.highest(), place.count)))
    }

    /// The stored form described in the module documentation.
    ///
    /// # Panics
    /// Never: writing to memory does not fail.
    pub fn encode(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&*self.as_counters(), &mut bytes)
            .expect("serializing to memory does not fail");
        STANDARD.encode(bytes)
    }

    /// Reads the stored form. It uses memory of a few times the size of the text at most.
    ///
    /// Errors: not a stored histogram, a different number of digits, or impossible counts.
    pub fn decode(text: &str) -> Result<Self, HistogramError> {
        Ok(Self(Form::Stored(Stored::read(text).map_err(HistogramError)?)))
    }
}

/// Rank of the quantile `q` of `count` values, at least 1: q · count, rounded up unless it is an
/// integer up to rounding errors, such as 0.999 · 1,000.
pub fn rank(q: f64, count: u64) -> u64 {
    let exact = q.min(1.0) * count as f64;
    ((exact * (1.0 - 1e-12)).ceil() as u64).max(1)
}

/// # Panics
/// Never: `HdrHistogram` accepts three digits.
fn counters() -> Counters {
    Counters::new(SIGNIFICANT_DIGITS).expect("3 digits are valid")
}

#[cold]
fn unfolded(stored: &Stored) -> Counters {
    let mut counters = counters();
    stored.places().for_each(|place| put(&mut counters, place.lowest, place.count));
    counters
}

fn put(counters: &mut Counters, value_ns: u64, count: u64) {
    let value_ns = value_ns.clamp(1, LARGEST_NS);
    if counters.record_n(value_ns, count).is_err() {
        counters.saturating_record_n(value_ns, count);
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

    /// Products such as 0.999 · 48,000 may be slightly above the intended integer.
    #[test]
    fn rounding_does_not_change_the_rank_of_a_quantile() {
        let tails = [(0.99, 100), (0.999, 1_000), (0.9999, 10_000)];
        for (q, per) in tails {
            for times in 1..20_000 {
                let count = per * times;
                assert_eq!(rank(q, count), count - times, "{q} of {count}");
            }
        }
        assert_eq!((rank(0.5, 3), rank(0.0, 3), rank(1.0, 3), rank(2.0, 3)), (2, 1, 3, 3));
        let times = of(&[10, 20, 30, 40]);
        let read = Histogram::decode(&times.encode()).unwrap();
        let all = |h: &Histogram| [0, 1, 2, 3, 4, 5].map(|rank| h.ns_of(rank));
        assert_eq!((all(&times), all(&read)), ([10, 10, 20, 30, 40, 40], [10, 10, 20, 30, 40, 40]));
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
    fn a_wide_range_of_durations_keeps_its_precision() {
        let h = of(&[0, 2_048, 150_000, 3_000_000_000, u64::MAX]);
        for (q, expected) in [(0.2, 1.0), (0.4, 2_048.0), (0.6, 150_000.0), (0.8, 3e9)] {
            let got = h.quantile_ns(q) as f64;
            assert!((got / expected - 1.0).abs() <= 0.001, "{got} at {q}");
        }
        assert!(h.max_ns() >= LARGEST_NS);
    }

    #[test]
    fn record_many_equals_repeated_records() {
        let mut many = Histogram::new();
        many.record_many(0, 2);
        many.record_many(77_000, 3);
        many.record_many(5, 0);
        assert_eq!(many, of(&[0, 0, 77_000, 77_000, 77_000]));
    }

    #[test]
    fn recorded_durations_are_in_ascending_order() {
        let told: Vec<_> = of(&[7, 1_000_000, 3, 7]).recorded().collect();
        let (largest, count) = told[2];
        assert_eq!((&told[..2], count), (&[(3, 1), (7, 2)][..], 1));
        assert!((1_000_000..=1_001_000).contains(&largest), "{largest}");
        assert_eq!(Histogram::new().recorded().count(), 0);
    }

    proptest! {
        #[test]
        fn what_was_read_answers_as_what_was_recorded(
            a in prop::collection::vec((1u64..u64::MAX / 4, 1u64..5_000), 0..50),
            q in 0.0..1.0f64,
        ) {
            let mut h = Histogram::new();
            for (value, count) in &a {
                h.record_many(*value, *count);
            }
            let read = Histogram::decode(&h.encode()).unwrap();
            prop_assert_eq!(&read, &h);
            prop_assert_eq!((read.max_ns(), read.mean_ns()), (h.max_ns(), h.mean_ns()));
            for q in [q, 0.0, 0.5, 1.0] {
                prop_assert_eq!(read.quantile_ns(q), h.quantile_ns(q), "{}", q);
            }
            prop_assert_eq!(read.encode(), h.encode());
            let mut both = read.clone();
            both.merge(&read);
            let twice: Vec<_> = h.recorded().map(|(ns, count)| (ns, 2 * count)).collect();
            prop_assert_eq!(both.recorded().collect::<Vec<_>>(), twice);
        }
    }

    /// A forged stored form: digits, highest value, length of the counts, counts.
    fn forged(digits: u32, highest: u64, length: u32, counts: &[u8]) -> String {
        use std::io::Write as _;
        let mut inner = 0x1c84_9313_u32.to_be_bytes().to_vec();
        inner.extend([length, 0, digits].iter().flat_map(|n| n.to_be_bytes()));
        inner.extend([1, highest].iter().flat_map(|n| n.to_be_bytes()));
        inner.extend(1f64.to_be_bytes());
        inner.extend(counts);
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        zlib.write_all(&inner).unwrap();
        let zlib = zlib.finish().unwrap();
        let mut all = 0x1c84_9314_u32.to_be_bytes().to_vec();
        all.extend((zlib.len() as u32).to_be_bytes());
        all.extend(zlib);
        STANDARD.encode(all)
    }

    #[test]
    fn a_forged_length_range_or_count_is_refused_before_memory_is_allocated() {
        assert_eq!(Histogram::decode(&forged(3, 1 << 40, 2, &[2, 4])).unwrap().count(), 3);
        // The counts, not the claimed range, determine the memory.
        assert_eq!(Histogram::decode(&forged(3, u64::MAX, 2, &[2, 4])).unwrap().count(), 3);
        let zeros = vec![0; 40 << 20];
        let huge = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        for (digits, length, counts) in [
            (5, 2, &[2, 4][..]),
            (3, u32::MAX, &[2, 4]),
            (3, zeros.len() as u32, &zeros),
            // A sum of counts that overflows, and zeros beyond the last value.
            (3, 9, &huge),
            (3, 9, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
            (3, 9, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
            (3, 1, &[0x80]),
        ] {
            let text = forged(digits, 1 << 40, length, counts);
            assert!(Histogram::decode(&text).is_err(), "{digits} {length}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(Histogram::decode("not base64!").is_err());
        assert!(Histogram::decode("AAAA").is_err());
    }
}

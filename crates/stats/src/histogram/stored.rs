//! A distribution that was read: checked, and kept in its stored form.
//!
//! With a counter per value, even a distribution of one value takes 400 kB, and the library
//! allocates counters for the whole claimed range. So a distribution that was read keeps its counts
//! in the stored form, with a few bytes for each that is not zero.
//!
//! Format: `V2` of <https://github.com/HdrHistogram/HdrHistogram>, compressed: a cookie and a
//! length, then, compressed by zlib, a header of 40 bytes and the counts from the lowest value up
//! as `ZigZag` LEB128 numbers. A negative number means that many zeros.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use std::borrow::Cow;
use std::io::Read as _;

/// Significant decimal digits kept: a value is stored within 0.1 %.
pub const SIGNIFICANT_DIGITS: u8 = 3;

const COOKIE: u32 = 0x1c84_9313;
const COOKIE_COMPRESSED: u32 = 0x1c84_9314;
const HEADER: usize = 40;
/// Distinct values per power of two at three digits.
const HALF: usize = 1024;
/// Distinct values up to [`super::LARGEST_NS`].
const PLACES: usize = 53 * HALF;
/// Maximum length of an encoded count, bytes.
const COUNT_BYTES: usize = 9;
/// Largest accepted total: ten million per second for twenty days. The sum of a million such
/// distributions does not overflow.
const COUNT_MAX: u64 = 1 << 44;
/// Counts that unpack to more than this multiple of their text stay packed. Real measurements do
/// not.
const UNPACKED_MAX: usize = 4;

/// Counts by value.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    bytes: Box<[u8]>,
    /// True if the bytes are still compressed, including the header.
    packed: bool,
    /// Sum of all counts.
    pub(super) count: u64,
}

/// A bucket: values that are indistinguishable at this precision.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) lowest: u64,
    pub(super) width: u64,
    pub(super) count: u64,
}

impl Place {
    pub(super) fn highest(self) -> u64 {
        self.lowest + (self.width - 1)
    }
}

impl Stored {
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let all = STANDARD.decode(text).map_err(|e| e.to_string())?;
        let (cookie, length) = (number(&all, 0)?, number(&all, 4)? as usize);
        if cookie != COOKIE_COMPRESSED {
            return Err("not a compressed histogram of version 2".into());
        }
        let zlib = all.get(8..).unwrap_or_default();
        let zlib = zlib.get(..length).ok_or("shorter than its length field says")?;
        let counts = unpack(zlib)?;
        let count = total(&counts)?;
        let packed = counts.len() > UNPACKED_MAX * text.len();
        let bytes = if packed { zlib.into() } else { counts.into_boxed_slice() };
        Ok(Self { bytes, packed, count })
    }

    /// Buckets with a count above 0, ascending.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> + '_ {
        let bytes = if self.packed {
            // Cannot fail: it was unpacked once when it was read.
            Cow::Owned(unpack(&self.bytes).unwrap_or_default())
        } else {
            Cow::Borrowed(&*self.bytes)
        };
        let (mut at, mut index) = (0, 0);
        std::iter::from_fn(move || {
            loop {
                let (count, length) = signed(bytes.get(at..)?)?;
                at += length;
                let place = index;
                index += usize::try_from(-count).unwrap_or(1).max(1);
                if count > 0 {
                    return Some(place_of(place, count.unsigned_abs()));
                }
            }
        })
    }
}

fn place_of(index: usize, count: u64) -> Place {
    if index < 2 * HALF {
        return Place { lowest: index as u64, width: 1, count };
    }
    let power = index / HALF - 1;
    let lowest = (index % HALF + HALF) as u64;
    Place { lowest: lowest << power, width: 1 << power, count }
}

/// Unpacks the counts without the header, at most as many as there are buckets.
fn unpack(zlib: &[u8]) -> Result<Vec<u8>, String> {
    let most = HEADER + PLACES * COUNT_BYTES;
    let mut all = Vec::new();
    ZlibDecoder::new(zlib)
        .take(most as u64 + 1)
        .read_to_end(&mut all)
        .map_err(|e| e.to_string())?;
    let (cookie, length) = (number(&all, 0)?, number(&all, 4)? as usize);
    let (offset, digits) = (number(&all, 8)?, number(&all, 12)?);
    let lowest = (number(&all, 16)?, number(&all, 20)?);
    if digits != u32::from(SIGNIFICANT_DIGITS) {
        return Err(format!("{digits} digits, expected {SIGNIFICANT_DIGITS}"));
    }
    if cookie != COOKIE || offset != 0 || lowest != (0, 1) {
        return Err("not a histogram of version 2 with values from 1 up".into());
    }
    if all.len() < HEADER || all.len() - HEADER < length || all.len() > most {
        return Err(format!("{length} bytes of counts do not fit its values"));
    }
    all.truncate(HEADER + length);
    all.drain(..HEADER);
    all.shrink_to_fit();
    Ok(all)
}

/// Sum of all counts.
fn total(counts: &[u8]) -> Result<u64, String> {
    let (mut at, mut index, mut total) = (0, 0_usize, 0_u64);
    while at < counts.len() {
        let (count, length) = signed(&counts[at..]).ok_or("a count is truncated")?;
        at += length;
        let step = if count < 0 { usize::try_from(count.unsigned_abs()).ok() } else { Some(1) };
        index = step.and_then(|step| index.checked_add(step)).unwrap_or(usize::MAX);
        total = total.saturating_add_signed(count.max(0));
        if index > PLACES || total > COUNT_MAX {
            return Err(format!(
                "its counts are beyond what can be measured (expected at most {COUNT_MAX}, at \
                 {PLACES} values)"
            ));
        }
    }
    Ok(total)
}

/// The four bytes at `at` as a number.
fn number(bytes: &[u8], at: usize) -> Result<u32, String> {
    let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    Ok(u32::from_be_bytes(four.ok_or("too short")?))
}

/// The number at the start of `bytes` and its length; `None` if it is truncated.
fn signed(bytes: &[u8]) -> Option<(i64, usize)> {
    let mut value = 0;
    for (i, byte) in bytes.iter().take(COUNT_BYTES).enumerate() {
        let is_last = i + 1 == COUNT_BYTES;
        let bits = if is_last { *byte } else { *byte & 0x7f };
        value |= u64::from(bits) << (7 * i);
        if is_last || byte & 0x80 == 0 {
            return Some(((value >> 1).cast_signed() ^ -(value & 1).cast_signed(), i + 1));
        }
    }
    None
}

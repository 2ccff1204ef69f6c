//! Contents of values, and their check as they arrive.
//!
//! A value of at least [`STAMP`] bytes starts with its version, 11 digits in base 62. The remaining
//! bytes, or all bytes of a shorter value, are a slice of a pool of 128 KiB of random characters
//! `0-9a-zA-Z`. The slice starts at an offset that is a scattered function of (seed, key, version,
//! length) and wraps around at the end of the pool. So generating a value costs little more than
//! copying it, and checking it little more than comparing it. The slices of two values of the same
//! length agree by chance in one of 2¹⁷ pairs.
//!
//! It follows that any changed byte of the slice is detected. A changed stamp, another key or
//! another length are detected through the slice, by as many characters as it has. A value of 11
//! bytes consists only of a stamp.

use std::fmt;
use std::sync::Arc;

use super::user::{DRAWN_BYTES, USER_BYTES, USERNAME, user};
use super::uuid::Uuids;
use super::{JSON, KvError, Sizes};
use stats::{GOLDEN, scatter};

use crate::values::{ALPHABET, STAMP, mix, value_into};

/// Length of the pool, a power of two; small enough to stay in a CPU's own cache.
const POOL: usize = 1 << 17;
/// Mixed into the seed to make the pool unrelated to other numbers of the seed.
const SALT: u64 = 0x706f_6f6c;
/// Value of a character as a digit; [`NO_DIGIT`] if it is not a digit.
const DIGITS: [u8; 256] = digits();
const NO_DIGIT: u8 = 62;
/// Odd factors that separate the inputs of an offset.
const FACTORS: [u64; 3] = [GOLDEN, 0xd1b5_4a32_d192_ed03, 0x8cb9_2ba7_2f3d_8dd7];

const fn digits() -> [u8; 256] {
    let (mut digits, mut digit) = ([NO_DIGIT; 256], 0);
    while digit < 62 {
        digits[ALPHABET[digit] as usize] = digit as u8;
        digit += 1;
    }
    digits
}

/// Generator of values. Clones share the pool.
#[derive(Clone)]
pub struct Values {
    pool: Arc<[u8]>,
    /// The seed, mixed.
    base: u64,
    /// UUIDs of user objects; `None` for values of a stamp and a slice.
    users: Option<Uuids>,
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Values").field("base", &self.base).finish_non_exhaustive()
    }
}

/// Progress in checking one value.
#[derive(Clone, Copy, Debug)]
pub struct ValueCheck {
    key: u64,
    bytes: usize,
    /// Number of bytes checked.
    at: usize,
    /// Version from the digits so far.
    version: u64,
    /// Position of the next byte in the pool, once it is known.
    offset: usize,
    wrong: bool,
}

impl ValueCheck {
    /// Starts the check of a value of `key` that is `bytes` long.
    #[inline]
    pub fn new(key: u64, bytes: usize) -> Self {
        Self { key, bytes, at: 0, version: 0, offset: 0, wrong: false }
    }

    /// The version in the stamp; `None` before the stamp is complete, for a value too short for a
    /// stamp, and for a wrong value.
    #[inline]
    pub fn version(&self) -> Option<u64> {
        (self.at >= STAMP && !self.wrong).then_some(self.version)
    }

    /// Adds a byte of the stamp.
    #[inline]
    fn digit(&mut self, character: u8) -> bool {
        let digit = DIGITS[usize::from(character)];
        let version = self.version.checked_mul(62).and_then(|v| v.checked_add(u64::from(digit)));
        self.version = version.unwrap_or(0);
        self.at += 1;
        version.is_some() && digit != NO_DIGIT
    }
}

impl Values {
    /// Draws the pool, 128 KiB, from `seed`.
    pub fn new(seed: u64) -> Self {
        let base = mix(&[seed, SALT]);
        let mut drawn = Vec::new();
        value_into(&mut drawn, base, 0, 0, STAMP + POOL);
        Self { pool: drawn.split_off(STAMP).into(), base, users: None }
    }

    /// Like [`Self::new`], but values are user objects ([`super::user`]), all of the same length.
    pub fn users(seed: u64) -> Self {
        Self { users: Some(Uuids::new(seed)), ..Self::new(seed) }
    }

    /// Appends the value of `key` in `version`, `bytes` long.
    #[inline]
    pub fn append(&self, out: &mut Vec<u8>, key: u64, version: u64, bytes: usize) {
        if let Some(uuids) = self.users {
            out.extend_from_slice(&self.user(uuids, key, version));
            return;
        }
        out.reserve(bytes);
        let (offset, mut left) = if bytes < STAMP {
            (self.offset(key, 0, bytes), bytes)
        } else {
            out.extend_from_slice(&stamp(version));
            (self.offset(key, version, bytes), bytes - STAMP)
        };
        let mut rest = &self.pool[offset..];
        while left > rest.len() {
            out.extend_from_slice(rest);
            left -= rest.len();
            rest = &self.pool;
        }
        out.extend_from_slice(&rest[..left]);
    }

    /// Checks the next bytes of a value; false after any wrong byte, or if there are more bytes
    /// than the value has.
    pub fn check(&self, check: &mut ValueCheck, chunk: &[u8]) -> bool {
        let fits = chunk.len() <= check.bytes - check.at;
        check.wrong = check.wrong
            || !fits
            || match self.users {
                None => !self.continues(check, chunk),
                Some(uuids) => !self.continues_user(uuids, check, chunk),
            };
        !check.wrong
    }

    fn user(&self, uuids: Uuids, key: u64, version: u64) -> [u8; USER_BYTES] {
        let from = self.offset(key, version, USER_BYTES).min(POOL - DRAWN_BYTES);
        let drawn = &self.pool[from..from + DRAWN_BYTES];
        user(uuids, key, &stamp(version)[STAMP - USERNAME.len()..], drawn)
    }

    /// Like [`Self::continues`], for a user object.
    fn continues_user(&self, uuids: Uuids, check: &mut ValueCheck, chunk: &[u8]) -> bool {
        if check.bytes != USER_BYTES {
            return false;
        }
        // Bytes before the version do not depend on it.
        let mut expected = self.user(uuids, check.key, check.version);
        chunk.iter().all(|character| {
            if !USERNAME.contains(&check.at) {
                check.at += 1;
                return *character == expected[check.at - 1];
            }
            let is_digit = check.digit(*character);
            if check.at == USERNAME.end {
                expected = self.user(uuids, check.key, check.version);
            }
            is_digit
        })
    }

    /// True if `chunk`, which is no longer than the remaining value, continues the value correctly.
    fn continues(&self, check: &mut ValueCheck, mut chunk: &[u8]) -> bool {
        let head = if check.bytes < STAMP { 0 } else { STAMP };
        while check.at < head {
            let Some((first, rest)) = chunk.split_first() else { return true };
            if !check.digit(*first) {
                return false;
            }
            chunk = rest;
        }
        if check.at == head {
            check.offset = self.offset(check.key, check.version, check.bytes);
        }
        check.at += chunk.len();
        while !chunk.is_empty() {
            let there = &self.pool[check.offset..];
            let (now, later) = chunk.split_at(chunk.len().min(there.len()));
            if now != &there[..now.len()] {
                return false;
            }
            check.offset = (check.offset + now.len()) % POOL;
            chunk = later;
        }
        true
    }

    /// Offset in the pool where a value's slice starts.
    #[inline]
    fn offset(&self, key: u64, version: u64, bytes: usize) -> usize {
        let parts = key
            .wrapping_mul(FACTORS[0])
            .wrapping_add(version.wrapping_mul(FACTORS[1]))
            .wrapping_add((bytes as u64).wrapping_mul(FACTORS[2]));
        scatter(self.base.wrapping_add(parts)) as usize % POOL
    }
}

/// Lengths and contents of values from the user's text: a size, or [`JSON`].
///
/// Errors: text that is not a size.
pub fn values_of(text: &str, seed: u64) -> Result<(Sizes, Values), KvError> {
    if text == JSON {
        return Ok((Sizes::all(USER_BYTES), Values::users(seed)));
    }
    Ok((text.parse()?, Values::new(seed)))
}

/// `version` in base 62, most significant digit first.
///
/// Split into two halves whose divisions run in parallel.
#[inline]
fn stamp(version: u64) -> [u8; STAMP] {
    const LOW: usize = 6;
    let mut stamp = [0; STAMP];
    let (mut high, mut low) = (version / 62u64.pow(LOW as u32), version % 62u64.pow(LOW as u32));
    for i in 0..LOW {
        stamp[STAMP - 1 - i] = ALPHABET[(low % 62) as usize];
        low /= 62;
        if i < STAMP - LOW {
            stamp[STAMP - LOW - 1 - i] = ALPHABET[(high % 62) as usize];
            high /= 62;
        }
    }
    stamp
}

#[cfg(test)]
#[path = "values_tests.rs"]
mod tests;

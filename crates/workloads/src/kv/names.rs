//! Names of keys: a prefix and either the key's number in decimal digits, padded with zeros, or a
//! UUID that ends in those digits.

use super::digits::write_over_zeros;
use super::uuid::{UUID_BYTES, Uuids};
use super::{Key, KvError, Sizes, numbers};

/// Keyword for UUID names, where lengths of names are given.
pub const UUID: &str = "uuid";
/// Default number of digits, as in redis-benchmark.
const DIGITS: usize = 12;
/// Random stream for the lengths of names.
const STREAM: u64 = 0x6e61_6d65;

/// Names of keys: a prefix, then the key's number padded with zeros, or a UUID.
///
/// The [`Default`] names, `key:` and 12 digits, are those of redis-benchmark.
#[derive(Clone, Debug)]
pub struct KeyNames {
    /// The prefix, and a zero for each digit of the longest name.
    longest: Vec<u8>,
    prefix_bytes: usize,
    /// Lengths that vary by key; `None` if all names have the length of the longest.
    drawn: Option<Drawn>,
    /// UUIDs that replace the zeros; `None` for names with numbers.
    uuids: Option<Uuids>,
}

/// Lengths that vary by key.
#[derive(Clone, Debug)]
struct Drawn {
    sizes: Sizes,
    seed: u64,
    least: usize,
}

impl Default for KeyNames {
    fn default() -> Self {
        Self::of_length("key:", DIGITS, None)
    }
}

impl KeyNames {
    /// Names of `prefix` and twelve digits, which is enough for all keys that can be chosen from.
    ///
    /// Errors: a prefix with white space or control characters.
    pub fn new(prefix: &str) -> Result<Self, KvError> {
        Ok(Self::of_length(checked(prefix)?, DIGITS, None))
    }

    /// Names of `prefix` and `digits` digits for `keys` keys, including those to be inserted.
    ///
    /// Errors: fewer digits than the highest number has, or a prefix as for [`Self::new`].
    pub fn with_digits(prefix: &str, digits: usize, keys: u64) -> Result<Self, KvError> {
        let least = digits_of(keys);
        if digits < least {
            return Err(KvError(format!(
                "`{digits}` digits are too few for {keys} keys, expected at least \
                 {least}"
            )));
        }
        Ok(Self::of_length(checked(prefix)?, digits, None))
    }

    /// Names of `prefix` and a number; the length of each follows from `sizes`, its key and the
    /// seed.
    ///
    /// Published distributions go down to one byte. Names that would be shorter than the prefix and
    /// the digits of the highest number get exactly that length.
    ///
    /// Errors: other distributions with such lengths, or a prefix as for [`Self::new`].
    pub fn sized(prefix: &str, sizes: Sizes, seed: u64, keys: u64) -> Result<Self, KvError> {
        let (prefix, digits) = (checked(prefix)?, digits_of(keys));
        let least = prefix.len() + digits;
        if sizes.min() < least && !sizes.is_published() {
            return Err(KvError(format!(
                "names of `{sizes}` bytes are too short for {keys} keys, expected at least \
                 {least}: the prefix has {} and the largest number {digits}",
                prefix.len()
            )));
        }
        let longest = sizes.max().max(least) - prefix.len();
        let seed = numbers(seed, STREAM, 0).next_u64();
        let drawn = sizes.fixed().is_none().then_some(Drawn { sizes, seed, least });
        Ok(Self::of_length(prefix, longest, drawn))
    }

    /// Names of `prefix` and a UUID that is derived from the seed and the key.
    ///
    /// Errors: a prefix as for [`Self::new`].
    pub fn uuids(prefix: &str, seed: u64) -> Result<Self, KvError> {
        let names = Self::of_length(checked(prefix)?, UUID_BYTES, None);
        Ok(Self { uuids: Some(Uuids::new(seed)), ..names })
    }

    fn of_length(prefix: &str, digits: usize, drawn: Option<Drawn>) -> Self {
        let mut longest = prefix.as_bytes().to_vec();
        longest.resize(prefix.len() + digits, b'0');
        Self { longest, prefix_bytes: prefix.len(), drawn, uuids: None }
    }

    /// Length of all names in bytes; `None` if they differ.
    #[inline]
    pub fn fixed_bytes(&self) -> Option<usize> {
        self.drawn.is_none().then_some(self.longest.len())
    }

    /// Length of the longest name in bytes.
    pub fn bytes_max(&self) -> usize {
        self.longest.len()
    }

    /// Length of the name of `key` in bytes.
    #[inline]
    pub fn bytes(&self, key: Key) -> usize {
        match &self.drawn {
            None => self.longest.len(),
            Some(drawn) => drawn.sizes.bytes(drawn.seed, key).max(drawn.least),
        }
    }

    /// Appends the name of `key`.
    #[inline]
    pub fn append(&self, out: &mut Vec<u8>, key: Key) {
        let at = out.len();
        out.extend_from_slice(&self.longest[..self.bytes(key)]);
        self.write_over_first(&mut out[at..], key);
    }

    /// Turns the name of key 0 into that of `key`, if all names have the same length.
    #[inline]
    pub fn write_over_first(&self, name: &mut [u8], key: Key) {
        let name = &mut name[self.prefix_bytes..];
        match self.uuids {
            None => write_over_zeros(name, key.0),
            Some(uuids) => uuids.write(name, key.0),
        }
    }
}

/// Checks that a prefix is valid in every protocol.
fn checked(prefix: &str) -> Result<&str, KvError> {
    let breaks = |c: char| c.is_whitespace() || c.is_control();
    if prefix.contains(breaks) {
        return Err(KvError(format!(
            "`{}` is not a key prefix, expected one without white space and control characters",
            prefix.escape_debug()
        )));
    }
    Ok(prefix)
}

/// Number of decimal digits of the highest of `keys` numbers from 0.
fn digits_of(keys: u64) -> usize {
    keys.saturating_sub(1).checked_ilog10().map_or(1, |log| log as usize + 1)
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;

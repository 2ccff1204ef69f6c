//! Range checks of the numbers in a record.
//!
//! Bogus counts or times must not cause overflows or endless loops. So the magnitude of each number
//! in a file is limited to what can be measured, and the sum of all whole numbers of a file is
//! limited so that no partial sum can overflow.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Maximum magnitude of a number, about 146 years in nanoseconds.
const NUMBER_MAX: f64 = 4.6e18;
/// Maximum sum of the magnitudes of all whole numbers of a file.
const SUM_MAX: u128 = i64::MAX as u128;
/// Keys of ordinal numbers, which are incremented later, and their maximum.
const ORDINALS: [&str; 2] = ["block", "number"];
const ORDINAL_MAX: u128 = 1 << 30;
/// Keys of unrestricted 64-bit numbers, which are compared but never summed.
const ANY: [&str; 2] = ["seed", "limit_ns"];

/// Checks the lines of a JSON file; ignores invalid JSON. Errors: the line number, starting at 1,
/// and the problem.
pub(crate) fn check<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Result<(), (usize, String)> {
    let mut sum = 0;
    for (text, line) in lines.zip(1..) {
        let mut reader = serde_json::Deserializer::from_slice(text);
        let seed = Checked { key: "", sum: &mut sum };
        if let Err(e) = seed.deserialize(&mut reader)
            && e.is_data()
        {
            return Err((line, e.to_string()));
        }
    }
    Ok(())
}

/// Visitor that checks the numbers of a JSON value without storing it.
struct Checked<'a> {
    /// Key of the value.
    key: &'a str,
    /// Sum of the whole numbers so far.
    sum: &'a mut u128,
}

impl Checked<'_> {
    fn whole<E: Error>(self, number: u128) -> Result<(), E> {
        let Self { key, sum } = self;
        if ANY.contains(&key) {
            return Ok(());
        }
        if ORDINALS.contains(&key) && number > ORDINAL_MAX {
            let expected = format!("expected at most {ORDINAL_MAX}");
            return Err(E::custom(format!("`{key}` is `{number}` ({expected})")));
        }
        *sum += number;
        if *sum > SUM_MAX {
            return Err(E::custom(format!(
                "`{key}` is `{number}`, more than can be measured (expected at most \
                 {SUM_MAX} for all numbers of the file together)"
            )));
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Checked<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Checked<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.whole(number.into())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.whole(number.unsigned_abs().into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        if number.abs() <= NUMBER_MAX {
            return Ok(());
        }
        Err(E::custom(format!(
            "`{}` is `{number:e}`, more than can be measured (expected at most \
             {NUMBER_MAX:e})",
            self.key
        )))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self { key, sum } = self;
        while list.next_element_seed(Checked { key, sum: &mut *sum })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            map.next_value_seed(Checked { key: &key, sum: &mut *self.sum })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinals_are_limited() {
        let check = |text: &str| check([text.as_bytes()].into_iter());
        assert_eq!(check(r#"{"block": 1073741824, "ok": 4294967295}"#), Ok(()));
        let (line, problem) = check(r#"{"block": 4294967295}"#).unwrap_err();
        assert_eq!(line, 1);
        assert!(problem.starts_with("`block` is `4294967295` (expected at most 1073741824)"));
    }
}

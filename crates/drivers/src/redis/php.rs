//! What Symfony and Laravel keep in Redis as PHP's `serialize` writes it: strings, and lists of
//! tags. A text that PHP takes for a number as a key of an array is a number in a list of keys.

use crate::php::Value;

/// Appends a string.
pub(super) fn write_string(text: &[u8], out: &mut Vec<u8>) {
    Value::Str(text).write(out);
}

/// Appends the keys of an array as a list.
pub(super) fn write_keys(keys: &[&str], out: &mut Vec<u8>) {
    let keys = keys.iter().copied().map(|key| match key.parse::<i64>() {
        Ok(number) if number.to_string() == key => Value::Int(number),
        _ => Value::Str(key.as_bytes()),
    });
    Value::list(keys).write(out);
}

/// The string that is all of `bytes`; `None` for something else.
pub(super) fn read_string(bytes: &[u8]) -> Option<&[u8]> {
    Value::read_whole(bytes)?.str()
}

/// The list of strings and numbers that is all of `bytes`, as text; `None` for something else.
pub(super) fn read_keys(bytes: &[u8]) -> Option<Vec<String>> {
    let Value::Array(None, entries) = Value::read_whole(bytes)? else { return None };
    let key = |(at, (place, key)): (i64, (Value<'_>, Value<'_>))| match key {
        _ if place != Value::Int(at) => None,
        Value::Int(number) => Some(number.to_string()),
        Value::Str(text) => String::from_utf8(text.into()).ok(),
        _ => None,
    };
    (0..).zip(entries).map(key).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_are_written_as_php_does() {
        // serialize(array_keys(['T2' => 1, '17' => 1, '017' => 1, '-0' => 1, 'ü' => 1])) of PHP 8.2
        let keys = ["T2", "17", "017", "-0", "ü"];
        let written = "a:5:{i:0;s:2:\"T2\";i:1;i:17;i:2;s:3:\"017\";i:3;s:2:\"-0\";i:4;s:2:\"ü\";}";
        let mut out = Vec::new();
        write_keys(&keys, &mut out);
        assert_eq!(out, written.as_bytes());
        assert_eq!(read_keys(&out).unwrap(), keys);
    }

    #[test]
    fn what_is_not_whole_is_nothing() {
        for bad in ["", "s:3:\"ab\";", "s:2:\"ab\"", "s:-1:\"\";", "s:2:\"ab\";x", "i:1;", "N;"] {
            assert_eq!(read_string(bad.as_bytes()), None, "{bad}");
        }
        for bad in ["a:1:{}", "a:1:{i:1;i:2;}", "a:1:{i:0;i:2;", "a:0:{}x", "a:-1:{i:0;i:1;}"] {
            assert_eq!(read_keys(bad.as_bytes()), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn strings_and_keys_come_back(text: Vec<u8>, keys in prop::collection::vec("\\PC*", 0..5)) {
            let mut out = Vec::new();
            write_string(&text, &mut out);
            prop_assert_eq!(read_string(&out), Some(text.as_slice()));
            out.clear();
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            write_keys(&keys, &mut out);
            prop_assert_eq!(read_keys(&out).unwrap(), keys);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>) {
            read_string(&bytes);
            read_keys(&bytes);
        }
    }
}

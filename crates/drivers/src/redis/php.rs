//! Values as PHP's `serialize` writes them, as far as caches hold them: strings, and lists of tags.
//!
//! `s:<bytes>:"<text>";` is a string, `i:<number>;` a number and `a:<length>:{i:0;<value>…}` a
//! list. A text that PHP takes for a number as a key of an array is a number in a list of keys.

/// Appends a string.
pub(super) fn write_string(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("s:{}:\"", text.len()).as_bytes());
    out.extend_from_slice(text);
    out.extend_from_slice(b"\";");
}

/// Appends the keys of an array as a list.
pub(super) fn write_keys(keys: &[&str], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("a:{}:{{", keys.len()).as_bytes());
    for (at, key) in keys.iter().enumerate() {
        out.extend_from_slice(format!("i:{at};").as_bytes());
        if key.parse::<i64>().is_ok_and(|number| number.to_string() == **key) {
            out.extend_from_slice(format!("i:{key};").as_bytes());
        } else {
            write_string(key.as_bytes(), out);
        }
    }
    out.push(b'}');
}

/// The string that is all of `bytes`; `None` for something else.
pub(super) fn read_string(bytes: &[u8]) -> Option<&[u8]> {
    let (text, rest) = next_string(bytes)?;
    rest.is_empty().then_some(text)
}

/// The list of strings and numbers that is all of `bytes`, as text; `None` for something else.
pub(super) fn read_keys(bytes: &[u8]) -> Option<Vec<String>> {
    let (length, mut rest) = number(bytes.strip_prefix(b"a:")?, b":{")?;
    let mut keys = Vec::new();
    for at in 0..length {
        let (place, value) = number(rest.strip_prefix(b"i:")?, b";")?;
        let (key, after) = if let Some(digits) = value.strip_prefix(b"i:") {
            let (key, after) = number(digits, b";")?;
            (key.to_string(), after)
        } else {
            let (text, after) = next_string(value)?;
            (String::from_utf8(text.into()).ok()?, after)
        };
        if place != at {
            return None;
        }
        keys.push(key);
        rest = after;
    }
    (rest == b"}").then_some(keys)
}

fn next_string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = number(bytes.strip_prefix(b"s:")?, b":\"")?;
    let (text, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    Some((text, rest.strip_prefix(b"\";")?))
}

/// A number and what follows its end mark.
fn number<'a>(bytes: &'a [u8], end: &[u8]) -> Option<(i64, &'a [u8])> {
    let digits = bytes.iter().take_while(|b| b.is_ascii_digit() || **b == b'-').count();
    let number = std::str::from_utf8(&bytes[..digits]).ok()?.parse().ok()?;
    Some((number, bytes[digits..].strip_prefix(end)?))
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
